package cpu

import (
	"fmt"
	"unsafe"

	"rnnbench/device"
	"rnnbench/device/cpu/simd"
	"rnnbench/internal/parallel"
	"rnnbench/rnn/schedule"
)

var _ device.Hosted = (*program)(nil)

// A hosting runs a program for a host program.
type hosting struct {
	of     *program
	places []hostedPlace
	parts  []*program // nil: not made yet
}

// A hostedPlace is rows of a matrix that moves copy.
type hostedPlace struct {
	of      *schedule.Matrix
	rows    matrix
	offsets []int // nil: rows lie one after another
}

// Place implements device.Hosted.
func (h *hosting) Place(v schedule.View, offsets []int) (device.Place, error) {
	switch {
	case h.of.closed:
		return 0, errClosed
	case v.M.Private():
		return 0, fmt.Errorf("cpu: matrix %s is packed or scratch: it cannot be written or read", v.M.Name)
	case offsets != nil && len(offsets) != v.Rows:
		return 0, fmt.Errorf("cpu: there are %d offsets for %d rows of matrix %s", len(offsets), v.Rows, v.M.Name)
	}
	h.places = append(h.places, hostedPlace{v.M, (&binder{program: h.of}).matrix(v), offsets})
	return device.Place(len(h.places) - 1), nil
}

// Do implements device.Hosted.
func (h *hosting) Do(w device.Work, _ uintptr) error {
	if h.of.closed {
		return errClosed
	}
	for _, m := range w.In {
		at := &h.places[m.Place]
		if z := h.of.zeroed[at.of.ID]; z != nil {
			z.known = false
		}
		at.bring(m)
	}
	if w.Prepare {
		if err := h.prepare(); err != nil {
			return err
		}
	}
	if w.Part >= 0 {
		if err := h.run(w.Part); err != nil {
			return err
		}
	}
	for _, m := range w.Out {
		h.places[m.Place].take(m)
	}
	return nil
}

// prepare runs the preparation, on the calling thread if that takes less time than to wake another
// one.
func (h *hosting) prepare() error {
	const little = 1 << 16 // bytes
	var bytes int64
	for _, op := range h.of.schedule.Prepare {
		bytes += schedule.Bytes(op)
	}
	if bytes > little {
		return h.of.Prepare()
	}
	return here(func() {
		for i := range h.of.prepare {
			h.of.prepare[i].work.share(0, 1, &h.of.scratch[0])
		}
	})
}

// run runs a part.
func (h *hosting) run(part int) error {
	if h.parts == nil {
		h.parts = divide(h.of)
	}
	if part >= len(h.parts) {
		return fmt.Errorf("cpu: the schedule has %d parts, not %d", len(h.parts), part+1)
	}
	s := session{program: h.parts[part], runs: 1, hosted: true}
	return s.together(func(run func(n int)) { run(1) })
}

// Settle implements device.Hosted. Do has waited for all work.
func (h *hosting) Settle() error { return nil }

// each calls f for each row with its memory of the host program, which is of type E; nil: it has
// none. Large moves are shared by all processors.
func each[E any](at *hostedPlace, memory unsafe.Pointer, f func(ours []float32, theirs []E)) {
	cols, size := at.rows.cols, unsafe.Sizeof(*new(E))
	const perValue = 1 // to wake a processor takes as long as to copy a quarter of a million values
	parallel.Share(at.rows.rows, perValue*float64(at.rows.rows*cols), func(r int) {
		offset := r * cols
		if at.offsets != nil {
			offset = at.offsets[r]
		}
		ours := at.rows.data[r*at.rows.stride:][:cols]
		if offset < 0 {
			f(ours, nil)
			return
		}
		f(ours, unsafe.Slice((*E)(unsafe.Add(memory, uintptr(offset)*size)), cols))
	})
}

// bring copies from memory of the host program.
func (at *hostedPlace) bring(m device.Move) {
	switch {
	case m.At == nil:
		for r := range at.rows.rows {
			clear(at.rows.data[r*at.rows.stride:][:at.rows.cols])
		}
	case m.Type == device.Float32:
		each(at, m.At, func(ours, theirs []float32) { clear(ours[copy(ours, theirs):]) })
	default:
		widen := simd.FromF16
		if m.Type == device.BFloat16 {
			widen = simd.FromBF16
		}
		each(at, m.At, func(ours []float32, theirs []uint16) {
			for i, x := range theirs {
				ours[i] = widen(x)
			}
			clear(ours[len(theirs):])
		})
	}
}

// take copies to memory of the host program.
func (at *hostedPlace) take(m device.Move) {
	switch {
	case m.At == nil:
	case m.Type == device.Float32:
		each(at, m.At, func(ours, theirs []float32) { copy(theirs, ours) })
	default:
		narrow := simd.ToF16
		if m.Type == device.BFloat16 {
			narrow = simd.ToBF16
		}
		each(at, m.At, func(ours []float32, theirs []uint16) {
			for i := range theirs {
				theirs[i] = narrow(ours[i])
			}
		})
	}
}

// divide makes a program of each part of the schedule. All of them have the memory and the
// operations of p.
func divide(p *program) (parts []*program) {
	from := 0
	for i, n := range p.schedule.Nodes {
		if _, ok := n.Op.(schedule.Pause); ok {
			parts = append(parts, partOf(p, from, i))
			from = i + 1
		}
	}
	return append(parts, partOf(p, from, len(p.nodes)))
}

// partOf returns the program of nodes from … to-1.
func partOf(p *program, from, to int) *program {
	out := &program{
		device: p.device, schedule: p.schedule, knobs: p.knobs, memory: p.memory, format: p.format, scratch: p.scratch,
		teams: p.teams, reducing: -1, seats: p.seats, awake: p.awake, ready: p.barrier(0, p.device.workers),
		counters: p.counters, barriers: p.barriers, zeroed: p.zeroed, within: p.within,
	}
	before := make([]uint64, len(p.queues)) // nodes of each stream in earlier parts
	for s, q := range p.queues {
		var mine []int32
		for _, i := range q {
			switch {
			case int(i) < from:
				before[s]++
			case int(i) < to:
				mine = append(mine, i-int32(from))
			}
		}
		out.queues = append(out.queues, mine)
	}
	for _, n := range p.nodes[from:to] {
		all := n.wait
		n.wait = nil
		for _, t := range all {
			if t.nodes > before[t.stream] {
				n.wait = append(n.wait, turn{t.stream, t.nodes - before[t.stream]})
			}
		}
		out.nodes = append(out.nodes, n)
	}
	if p.teams == 1 {
		out.awake = needed(out.nodes, p.device.workers)
	}
	start(out)
	return out
}
