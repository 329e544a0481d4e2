package axis

import "math"

// Nearness says how points that are near each other may differ on an axis.
type Nearness int

const (
	Alike   Nearness = iota // not at all
	Set                     // in the size: both have 0, or neither
	Octaves                 // in the size: each doubling is an octave apart
	Any                     // at will: it changes no time
	Share                   // in the size: each doubling of the ratio to the hidden size is half an octave; both have 0, or neither
)

// Growth says how the memory that a point takes depends on an axis.
type Growth int

const (
	Unordered    Growth = iota // only equal values can be compared
	More                       // a larger size takes at least as much
	MoreWhereSet               // as More, but 0 and other sizes cannot be compared
	Less                       // a larger size takes at most as much
)

// Distance is how far two points are apart: octaves, summed over the sizes, and how many other axes
// differ.
func Distance(p, q Point) (octaves float64, others int) {
	half := 0.0
	for _, a := range Flags() {
		x, _ := a.Size(&p)
		y, _ := a.Size(&q)
		switch a.Near {
		case Any:
			continue
		case Alike:
			if a.Field(&p) != a.Field(&q) {
				others++
			}
			continue
		case Octaves:
			octaves += apart(float64(x), float64(y))
			continue
		case Share:
			if x > 0 {
				half += apart(float64(max(x, 1))/float64(p.Hidden), float64(max(y, 1))/float64(q.Hidden))
			}
		}
		if (x > 0) != (y > 0) {
			others++
		}
	}
	return octaves + half/2, others
}

// apart is how far two positive numbers are apart, in octaves.
func apart(x, y float64) float64 { return math.Abs(math.Log2(x / y)) }

// TakesMore reports whether p takes at least the memory of q on every axis, whatever the technique.
func TakesMore(p, q Point) bool {
	for _, a := range table {
		x, _ := a.Size(&p)
		y, _ := a.Size(&q)
		ok := a.Field(&p) == a.Field(&q)
		switch a.Memory {
		case More:
			ok = x >= y
		case MoreWhereSet:
			ok = x >= y && (x > 0) == (y > 0)
		case Less:
			ok = x <= y
		}
		if !ok {
			return false
		}
	}
	return true
}
