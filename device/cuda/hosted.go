package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"rnnbench/device"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/lower"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/schedule"
)

var _ device.Hosted = (*program)(nil)

// A hosting is what a program needs to work for a host program. All is made before the work, which
// neither allocates nor waits: stream 0 waits for the host program's stream, rows are moved in, a
// part runs, rows are moved out, and the host program's stream waits for stream 0.
//
// The launch that moves rows out also copies the status word to the host's memory. So an error of
// kernels is known to a later call, once the work has ended. In a graph that the host program
// captures, all of this happens whenever the graph runs.
type hosting struct {
	places   []hostedRows
	tables   []offsetTable
	parts    []part
	moves    []*moves     // those used last at the end
	report   []byte       // the status word, in host memory that the GPU can reach
	forked   driver.Event // recorded on the host program's stream
	ended    driver.Event // recorded after the latest work outside of captures
	captured driver.Event // recorded after work in captures, for which nobody else may wait
	busy     bool         // ended was recorded
	graphs   bool         // the host program has captured work, which may run at any time
}

// hostedRows are the rows of a place.
type hostedRows struct {
	pointwise.Rows
	counts bool // a run relies on what the previous run left of the matrix
}

// An offsetTable is offsets of rows on the GPU. Places with equal offsets share one.
type offsetTable struct {
	offsets []int
	at      driver.Pointer
}

// A part of the schedule is one graph, with the knob graph.
type part struct {
	calls
	graph driver.Graph
}

// moves are the launches for the moves of one list of places.
type moves struct {
	calls
	places   []device.Place
	out      bool
	launches []*driver.Launch
}

// mostMoves is how many lists of places have their launches ready. A layer has a few.
const mostMoves = 64

// hosts makes p's hosting, once.
func hosts(p *program) (*hosting, error) {
	if p.closed {
		return nil, errClosed
	}
	if p.hosting != nil {
		return p.hosting, nil
	}
	h := &hosting{}
	p.hosting = h // so that Close frees what was made before an error
	err := h.make(p)
	if err != nil {
		err = errors.Join(fmt.Errorf("cuda: %w", err), h.free(p))
		p.hosting = nil
	}
	return h, err
}

func (h *hosting) make(p *program) (err error) {
	d := p.device.driver
	for _, e := range []*driver.Event{&h.forked, &h.ended, &h.captured} {
		if *e, err = p.event(false); err != nil {
			return err
		}
	}
	if h.report, err = d.HostMemory(4); err != nil {
		return err
	}
	clear(h.report)
	for _, r := range lower.Parts(p.lowering, p.nodes) {
		var one part
		if one.list, err = enqueue(p, r); err != nil {
			return err
		}
		if one.ready, err = d.Sequence(one.list); err != nil {
			return err
		}
		if p.graphed {
			if one.graph, err = capture(p, &one.calls); err != nil {
				return errors.Join(err, d.FreeSequence(one.ready))
			}
		}
		h.parts = append(h.parts, one)
	}
	return nil
}

// Place implements device.Hosted.
func (p *program) Place(v schedule.View, offsets []int) (device.Place, error) {
	h, err := hosts(p)
	if err != nil {
		return 0, err
	}
	m := v.M
	switch {
	case m == nil || m.ID >= len(p.schedule.Matrices) || p.schedule.Matrices[m.ID] != m:
		return 0, errors.New("cuda: a place is of a matrix of the program's schedule")
	case m.Private():
		return 0, fmt.Errorf("cuda: matrix %s is packed or scratch: its rows have no place in a host program's memory", m.Name)
	case v.Empty() || v.Col != 0 || v.Cols != m.Cols:
		return 0, fmt.Errorf("cuda: a place is of whole rows of matrix %s", m.Name)
	case int64(v.Rows)*int64(v.Cols) > math.MaxInt32:
		return 0, fmt.Errorf("cuda: %w: a place of %d rows of %d elements is too large", schedule.ErrUnsupported, v.Rows, v.Cols)
	case offsets != nil && len(offsets) != v.Rows:
		return 0, fmt.Errorf("cuda: %d offsets are given for %d rows", len(offsets), v.Rows)
	}
	e := p.lowering.Elements[m.ID]
	r := hostedRows{counts: lower.CountsOn(p.lowering, m)}
	r.Rows = pointwise.Rows{At: p.address(m) + driver.Pointer(v.Row*v.Cols*e.Bytes()), Element: e, Rows: v.Rows, Cols: v.Cols, Quads: true}
	if offsets != nil {
		if r.Offsets, err = h.table(p, offsets, v.Cols); err != nil {
			return 0, err
		}
		r.Quads = v.Cols%4 == 0 && !slices.ContainsFunc(offsets, func(at int) bool { return at > 0 && at%4 != 0 })
	}
	h.places = append(h.places, r)
	return device.Place(len(h.places) - 1), nil
}

// table returns the offsets of rows of so many elements on the GPU.
func (h *hosting) table(p *program, offsets []int, cols int) (driver.Pointer, error) {
	for _, t := range h.tables {
		if slices.Equal(t.offsets, offsets) {
			return t.at, nil
		}
	}
	words := make([]uint32, len(offsets))
	for i, at := range offsets {
		if at < 0 {
			words[i] = pointwise.Nowhere
			continue
		}
		if at > math.MaxUint32-1-cols {
			return 0, fmt.Errorf("cuda: %w: a row cannot lie %d elements behind its address", schedule.ErrUnsupported, at)
		}
		words[i] = uint32(at)
	}
	d := p.device.driver
	at, err := d.Alloc(int64(4 * len(words)))
	if err != nil {
		return 0, fmt.Errorf("cuda: %w", err)
	}
	h.tables = append(h.tables, offsetTable{slices.Clone(offsets), at})
	if err := d.Upload(at, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 4*len(words))); err != nil {
		return 0, fmt.Errorf("cuda: %w", err)
	}
	return at, nil
}

// Do implements device.Hosted.
func (p *program) Do(w device.Work, stream uintptr) error {
	h, err := hosts(p)
	if err != nil {
		return err
	}
	if w.Part < -1 || w.Part >= len(h.parts) {
		return fmt.Errorf("cuda: there is no part %d: the schedule has %d", w.Part, len(h.parts))
	}
	if err := h.failed(p); err != nil {
		return err
	}
	in, err := h.moving(p, w.In, false)
	if err != nil {
		return err
	}
	out, err := h.moving(p, w.Out, true)
	if err != nil {
		return err
	}
	d := p.device.driver
	capturing, err := d.Capturing(stream)
	if err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	end := h.ended
	if h.graphs = h.graphs || capturing; capturing {
		end = h.captured
	}
	if err := d.Fork(stream, h.forked); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	failed := h.work(p, &w, in, out, capturing)
	if err := d.Join(stream, end); err != nil { // after an error as well, since a capture must not end with streams apart
		return errors.Join(failed, fmt.Errorf("cuda: %w", err))
	}
	h.busy = h.busy || !capturing
	return failed
}

// work begins w on stream 0 and the streams that wait for it.
func (h *hosting) work(p *program, w *device.Work, in, out *moves, capturing bool) error {
	for _, m := range w.In {
		p.stale = p.stale || h.places[m.Place].counts
	}
	if len(w.In) > 0 {
		if err := p.issue(&in.calls); err != nil {
			return err
		}
	}
	if w.Prepare && len(p.prepare.list) > 0 {
		if err := p.issue(&p.prepare); err != nil {
			return err
		}
	}
	if w.Part >= 0 {
		if err := refreshStale(p); err != nil {
			return err
		}
		if err := h.run(p, &h.parts[w.Part], capturing); err != nil {
			return err
		}
	}
	return p.issue(&out.calls)
}

// run begins a part. A capture takes its calls one by one.
func (h *hosting) run(p *program, one *part, capturing bool) error {
	if !p.graphed || capturing {
		return p.issue(&one.calls)
	}
	if err := p.device.driver.Replay(one.graph); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}

// moving returns the launches for a list of moves, with their addresses set.
func (h *hosting) moving(p *program, list []device.Move, out bool) (*moves, error) {
	for _, m := range list {
		if m.Place < 0 || int(m.Place) >= len(h.places) {
			return nil, fmt.Errorf("cuda: there is no place %d: the program has %d", m.Place, len(h.places))
		}
	}
	var found *moves
	for i, known := range slices.Backward(h.moves) {
		if known.out == out && slices.EqualFunc(known.places, list, func(at device.Place, m device.Move) bool { return at == m.Place }) {
			found = known
			h.moves = append(slices.Delete(h.moves, i, i+1), known)
			break
		}
	}
	if found == nil {
		var err error
		if found, err = h.move(p, list, out); err != nil {
			return nil, err
		}
	}
	for i, m := range list {
		pointwise.SetMove(found.launches[i/pointwise.MostMoves], i%pointwise.MostMoves, &h.places[m.Place].Rows, uintptr(m.At), elements[m.Type])
	}
	return found, nil
}

// elements are how values of each device.Type are stored.
var elements = [...]driver.Element{device.Float32: driver.Single, device.Float16: driver.Half, device.BFloat16: driver.Brain}

// move makes the launches for a list of moves. Out of the program there is at least one, which
// reports the status word.
func (h *hosting) move(p *program, list []device.Move, out bool) (*moves, error) {
	m := &moves{out: out}
	var rows []pointwise.Rows
	for _, one := range list {
		m.places, rows = append(m.places, one.Place), append(rows, h.places[one.Place].Rows)
	}
	var commands []launch.Command
	for out && len(commands) == 0 || len(rows) > 0 {
		n, report := min(len(rows), pointwise.MostMoves), driver.Pointer(0)
		if out && n == len(rows) {
			report = driver.Pointer(uintptr(unsafe.Pointer(&h.report[0])))
		}
		c := lower.Moves(p.lowering, p.base, rows[:n], out, report)
		commands, m.launches, rows = append(commands, c), append(m.launches, c.Launch), rows[n:]
	}
	if err := p.device.load(commands); err != nil {
		return nil, err
	}
	d := p.device.driver
	m.list = lower.PrepareCalls(commands)
	var err error
	if m.ready, err = d.Sequence(m.list); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	if len(h.moves) == mostMoves {
		err = d.FreeSequence(h.moves[0].ready)
		h.moves = h.moves[1:]
	}
	h.moves = append(h.moves, m)
	return m, err
}

// failed returns the error of work that has ended, once.
func (h *hosting) failed(p *program) error {
	word := atomic.LoadUint32((*uint32)(unsafe.Pointer(&h.report[0])))
	if word == 0 {
		return nil
	}
	err := p.statusError([4]byte(h.report)) // it first waits for all work
	clear(h.report)
	return err
}

// Settle implements device.Hosted. Work in a graph of the host program may be under way on any of
// its streams, so Settle then waits for all of them.
func (p *program) Settle() error {
	h := p.hosting
	switch {
	case p.closed:
		return errClosed
	case h == nil:
		return nil
	}
	if err := h.await(p); err != nil {
		return err
	}
	return h.failed(p)
}

// await waits for all work.
func (h *hosting) await(p *program) error {
	var err error
	switch d := p.device.driver; {
	case h.graphs:
		var word [4]byte
		err = d.Download(word[:], p.base+driver.Pointer(p.lowering.StatusOffset))
	case h.busy:
		err = d.Await(h.ended)
	}
	if err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}

// free frees h once all work has ended.
func (h *hosting) free(p *program) error {
	if h == nil {
		return nil
	}
	d := p.device.driver
	errs := []error{h.await(p)}
	for _, one := range h.parts {
		errs = append(errs, d.FreeSequence(one.ready))
		if p.graphed {
			errs = append(errs, d.FreeGraph(one.graph))
		}
	}
	for _, m := range h.moves {
		errs = append(errs, d.FreeSequence(m.ready))
	}
	for _, t := range h.tables {
		errs = append(errs, d.Free(t.at))
	}
	if h.report != nil {
		errs = append(errs, d.FreeHostMemory(h.report))
	}
	return errors.Join(errs...)
}
