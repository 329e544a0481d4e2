package cpu

import (
	"errors"
	"fmt"
	"unsafe"

	"rnnbench/device"
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/schedule"
)

var _ device.Hosted = (*program)(nil)

// A hosting runs a program for a host program.
type hosting struct {
	of     *program
	places []hostedPlace
	parts  []*program      // nil: not made yet
	packs  map[int][]*pack // steady ones, by the matrix that they read; made with parts
	steady []*pack         // of a part, those in it
}

// A hostedPlace is rows of a matrix that moves copy.
type hostedPlace struct {
	rows    matrix
	offsets []int    // nil: rows lie one after another
	matrix  int      // its number
	zeroed  *zeroing // of the matrix
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
	h.places = append(h.places, hostedPlace{(&binder{program: h.of}).matrix(v), offsets, v.M.ID, h.of.zeroed[v.M.ID]})
	return device.Place(len(h.places) - 1), nil
}

// Do implements device.Hosted.
func (h *hosting) Do(w device.Work, _ uintptr) error {
	if h.of.closed {
		return errClosed
	}
	part, err := h.part(w.Part)
	if err != nil {
		return err
	}
	for _, m := range w.In {
		at := &h.places[m.Place]
		if at.zeroed != nil {
			at.zeroed.known = false
		}
		h.changed(at.matrix)
	}
	little := !w.Prepare || h.preparesLittle()
	if little && h.moves(w.In) < large && h.moves(w.Out) < large && (part == nil || part.awake == 1) {
		return h.alone(&w, part)
	}
	if err := h.move(w.In, (*hostedPlace).bring); err != nil {
		return err
	}
	if w.Prepare {
		if err := h.prepare(little); err != nil {
			return err
		}
	}
	if part != nil {
		s := session{program: part, runs: 1, hosted: true}
		if err := s.together(func(run func(n int)) { run(1) }); err != nil {
			return err
		}
		part.keep()
	}
	return h.move(w.Out, (*hostedPlace).take)
}

// part returns a part of the schedule; below 0 there is none to run.
func (h *hosting) part(i int) (*program, error) {
	if i < 0 {
		return nil, nil
	}
	if h.parts == nil {
		h.packs = findSteady(h.of)
		h.parts = divide(h.of)
	}
	if i >= len(h.parts) {
		return nil, fmt.Errorf("cpu: the schedule has %d parts, not %d", len(h.parts), i+1)
	}
	return h.parts[i], nil
}

// alone does w on the calling thread. It makes no garbage: a host program calls for every step of a
// stream, and the collector's work would delay some of the calls.
func (h *hosting) alone(w *device.Work, part *program) (err error) {
	s := session{program: part, runs: 1, hosted: true}
	failed := here(func() {
		for _, m := range w.In {
			h.places[m.Place].bring(m, 0, 1)
		}
		if w.Prepare {
			h.prepareHere()
		}
		if part != nil {
			s.lead(part.done, 1)
			if err = s.end(nil); err != nil {
				return
			}
			part.keep()
		}
		for _, m := range w.Out {
			h.places[m.Place].take(m, 0, 1)
		}
	})
	if failed != nil && part != nil {
		return s.end(failed)
	}
	return errors.Join(failed, err)
}

// large is the number of values from which workers share a move.
const large = 1 << 15

// moves returns the number of values that moves copy.
func (h *hosting) moves(all []device.Move) (values int) {
	for _, m := range all {
		at := &h.places[m.Place]
		values += at.rows.rows * at.rows.cols
	}
	return values
}

// move makes moves. Workers share large ones.
func (h *hosting) move(moves []device.Move, one func(at *hostedPlace, m device.Move, part, parts int)) error {
	seats := h.of.seats
	if h.moves(moves) < large {
		seats = seats[:1]
	}
	return h.of.device.pool.with(seats, func(w int) {
		for _, m := range moves {
			one(&h.places[m.Place], m, w, len(seats))
		}
	})
}

// preparesLittle reports whether the preparation takes less time than to wake another thread.
func (h *hosting) preparesLittle() bool {
	const little = 1 << 16 // bytes
	var bytes int64
	for _, op := range h.of.schedule.Prepare {
		bytes += schedule.Bytes(op)
	}
	return bytes <= little
}

// prepare runs the preparation, on the calling thread if it is little.
func (h *hosting) prepare(little bool) error {
	if !little {
		return h.of.Prepare()
	}
	return here(h.prepareHere)
}

// prepareHere runs the preparation on this thread.
func (h *hosting) prepareHere() {
	for i := range h.of.prepare {
		h.of.prepare[i].work.share(0, 1, &h.of.scratch[0])
	}
}

// Settle implements device.Hosted. Do has waited for all work.
func (h *hosting) Settle() error { return nil }

// each calls f for a part of the rows with their memory of the host program, which is of type E; nil:
// it has none.
func each[E any](at *hostedPlace, memory unsafe.Pointer, part, parts int, f func(ours []float32, theirs []E)) {
	cols, size := at.rows.cols, unsafe.Sizeof(*new(E))
	from, to := span(at.rows.rows, 1, part, parts)
	for r := from; r < to; r++ {
		ours, offset := at.rows.data[r*at.rows.stride:][:cols], r*cols
		if at.offsets != nil {
			offset = at.offsets[r]
		}
		if offset < 0 {
			f(ours, nil)
			continue
		}
		f(ours, unsafe.Slice((*E)(unsafe.Add(memory, uintptr(offset)*size)), cols))
	}
}

// bring copies a part of the rows from memory of the host program.
func (at *hostedPlace) bring(m device.Move, part, parts int) {
	switch {
	case m.At == nil:
		from, to := span(at.rows.rows, 1, part, parts)
		for r := from; r < to; r++ {
			clear(at.rows.data[r*at.rows.stride:][:at.rows.cols])
		}
	case m.Type == device.Float32:
		each(at, m.At, part, parts, func(ours, theirs []float32) { clear(ours[copy(ours, theirs):]) })
	default:
		widen := simd.FromF16
		if m.Type == device.BFloat16 {
			widen = simd.FromBF16
		}
		each(at, m.At, part, parts, func(ours []float32, theirs []uint16) {
			for i, x := range theirs {
				ours[i] = widen(x)
			}
			clear(ours[len(theirs):])
		})
	}
}

// take copies a part of the rows to memory of the host program.
func (at *hostedPlace) take(m device.Move, part, parts int) {
	switch {
	case m.At == nil:
	case m.Type == device.Float32:
		each(at, m.At, part, parts, func(ours, theirs []float32) { copy(theirs, ours) })
	default:
		narrow := simd.ToF16
		if m.Type == device.BFloat16 {
			narrow = simd.ToBF16
		}
		each(at, m.At, part, parts, func(ours []float32, theirs []uint16) {
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
	out.packs, out.steady = p.packs, steadyOf(out.nodes)
	if p.teams == 1 {
		out.awake = needed(out.nodes, p.device.workers)
	}
	start(out)
	return out
}
