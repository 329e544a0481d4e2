package cpu

import "math"

// A change is a schedule.Change. One worker makes it.
type change struct{ a, b, out matrix }

func (w *change) share(part, _ int, _ *scratch) {
	if part > 0 {
		return
	}
	apart, size := w.out.data[0], w.out.data[1]
	for i := range w.a.rows {
		b := w.b.row(i)
		for j, v := range w.a.row(i) {
			d := v - b[j]
			if !(max(d, -d) <= math.MaxFloat32) {
				apart = float32(math.Inf(1))
			}
			apart, size = max(apart, d, -d), max(size, v, -v)
		}
	}
	w.out.data[0], w.out.data[1] = apart, size
}
