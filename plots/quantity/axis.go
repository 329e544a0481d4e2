// Package quantity extracts from records what tables and figures show: their places on axes, and
// measured values with confidence intervals. It also formats such numbers. It neither draws nor
// prints.
package quantity

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"rnnbench/internal/safe"
	"rnnbench/record"
	"rnnbench/rnn/axis"
)

// An Axis is one property by which records differ: a number such as the hidden size, or a name
// such as the technique.
type Axis struct {
	Name    string // in flags
	Title   string // in figures
	Letter  string // short form, as in H=512; empty: the value needs no name
	Numeric bool

	Progress bool // progress of training: each record has its own place, and ticks need no sizes

	text   func(r *record.Record) string
	number func(r *record.Record) (float64, bool)
}

// Text returns r's place on the axis as text. Records with the same text have the same place.
func (a Axis) Text(r *record.Record) string { return a.text(r) }

// Number returns r's place on a numeric axis; false: it has no number.
func (a Axis) Number(r *record.Record) (float64, bool) {
	if a.number == nil {
		return 0, false
	}
	return a.number(r)
}

// Tag returns r's place with the axis's letter, as in "H=512".
func (a Axis) Tag(r *record.Record) string {
	if a.Letter == "" {
		return a.Text(r)
	}
	return a.Letter + "=" + a.Text(r)
}

// Compare orders records along the axis: numbers by size, techniques by Rank, and other names
// alphabetically, with numbers inside them by size. Records at the same place compare as equal,
// whatever their numbers.
func (a Axis) Compare(x, y *record.Record) int {
	if a.Text(x) == a.Text(y) {
		return 0
	}
	if a.Numeric {
		nx, okx := a.Number(x)
		ny, oky := a.Number(y)
		switch {
		case okx && oky && nx < ny:
			return -1
		case okx && oky && nx > ny:
			return 1
		case okx != oky && oky:
			return -1
		case okx != oky:
			return 1
		}
	}
	if a.Name == "impl" {
		if c := Rank(x.Impl.Name, Label(x)) - Rank(y.Impl.Name, Label(y)); c != 0 {
			return c
		}
	}
	return natural(a.Text(x), a.Text(y))
}

// Label returns the name of r's technique in tables and legends, on one line.
func Label(r *record.Record) string {
	return OneLine(r.Label())
}

// OneLine replaces line breaks and hidden characters by spaces, and joins adjacent ones.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(c rune) bool {
		return unicode.IsSpace(c) || safe.Hidden(c) || c == unicode.ReplacementChar
	}), " ")
}

// Rank returns a technique's place in legends: first the five techniques of this program, then
// variants, and a vendor's library last.
func Rank(name, label string) int {
	techniques := []string{"naive", "cudnnstyle", "persistent", "scan", "scc"}
	switch i := slices.Index(techniques, label); {
	case i >= 0:
		return i
	case Vendor(name) || Vendor(label):
		return len(techniques) + 1
	}
	return len(techniques)
}

// Vendor reports whether a label names the library of a device's maker.
func Vendor(label string) bool {
	l := strings.ToLower(label)
	return l == "cudnn" || strings.HasPrefix(l, "cudnn ") || strings.HasPrefix(l, "vendor")
}

// Axes lists the axes that every record has, in the order of table columns. The
// knobs of techniques and devices are axes too; AxisOf finds them by name.
func Axes() []Axis {
	named := func(name, title string, text func(r *record.Record) string) Axis {
		return Axis{Name: name, Title: title, text: text}
	}
	var axes []Axis
	for _, a := range axis.Columns() {
		axes = append(axes, ofPoint(a))
	}
	return append(axes,
		named("impl", "technique", Label),
		named("device", "device", func(r *record.Record) string { return OneLine(r.Device) }),
		named("cache", "cache", func(r *record.Record) string { return r.Mode.Cache }),
		named("graph", "launch", func(r *record.Record) string {
			if r.Mode.Graph {
				return "graph"
			}
			return "direct"
		}),
		named("data", "input data", func(r *record.Record) string { return r.Mode.Data }),
	)
}

// ofPoint is an axis of the points of records.
func ofPoint(a axis.Axis) Axis {
	x := Axis{
		Name: cmp.Or(a.Column, a.Name), Title: a.Title, Letter: a.Tag(), Numeric: a.Numeric(),
		text: func(r *record.Record) string { return a.Place(&r.Point) },
	}
	if !a.Sized() {
		x.text = func(r *record.Record) string { return OneLine(a.Place(&r.Point)) }
	}
	if x.Numeric {
		x.number = func(r *record.Record) (float64, bool) { return a.Number(&r.Point) }
	}
	if a.Name == "streams" { // on a scale, "auto" lies at the number in use
		x.number = func(r *record.Record) (float64, bool) {
			n := cmp.Or(r.Point.Streams, r.Impl.Streams)
			return float64(n), n > 0
		}
	}
	return x
}

// AxisOf returns the axis of that name, which may be a knob of one of recs. The error for an
// unknown name suggests a known one.
func AxisOf(name string, recs []record.Record) (Axis, error) {
	all := Axes()
	if i := slices.IndexFunc(all, func(a Axis) bool { return a.Name == name }); i >= 0 {
		return all[i], nil
	}
	if a, ok := progressAxis(name); ok {
		return a, nil
	}
	known := make([]string, 0, len(all))
	for _, a := range all {
		known = append(known, a.Name)
	}
	knobs := map[string]bool{}
	for i := range recs {
		for k := range recs[i].Impl.Knobs {
			knobs[k] = true
		}
	}
	if knobs[name] {
		return knob(name), nil
	}
	names := make([]string, 0, len(knobs))
	for k := range knobs {
		if !slices.Contains(known, k) { // streams is both an axis and a knob
			names = append(names, k)
		}
	}
	slices.Sort(names)
	return Axis{}, fmt.Errorf("unknown axis %q: %s", name, suggest(name, append(known, names...)))
}

func knob(name string) Axis {
	return Axis{Name: name, Title: OneLine(name), Letter: OneLine(name), Numeric: true,
		text: func(r *record.Record) string {
			if v, ok := r.Impl.Knobs[name]; ok {
				return strconv.Itoa(v)
			}
			return "none"
		},
		number: func(r *record.Record) (float64, bool) {
			v, ok := r.Impl.Knobs[name]
			return float64(v), ok
		}}
}

// suggest returns the name that was probably meant, if one is near, and all known names.
func suggest(name string, known []string) string {
	if len(known) == 0 {
		return "none are known"
	}
	best, meant := 4+2*min(len(name), 30)/3, ""
	for _, k := range known {
		if d := distance(strings.ToLower(name), k); d < best {
			best, meant = d, fmt.Sprintf("did you mean %q? ", k)
		}
	}
	if meant == "" {
		return "choose among " + strings.Join(known, ", ")
	}
	return meant + "Choose among " + strings.Join(known, ", ")
}

// distance returns twice the number of edits from a to b, or 1 if a is the beginning of b, so that
// "hid" finds "hidden".
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = 2 * j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = 2 * (i + 1)
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d += 2
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j+1]+2, row[j]+2)
		}
	}
	d := row[len(b)]
	if a != "" && strings.HasPrefix(b, a) {
		d = min(d, 1)
	}
	return d
}

// natural compares names alphabetically, but numbers inside them by size.
func natural(a, b string) int {
	for a != "" && b != "" {
		na, ra := digits(a)
		nb, rb := digits(b)
		if na != "" && nb != "" {
			x, y := strings.TrimLeft(na, "0"), strings.TrimLeft(nb, "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			if c := strings.Compare(x, y); c != 0 {
				return c
			}
			a, b = ra, rb
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func digits(s string) (number, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}
