package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/lower"
	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A program is a compiled schedule with its memory and its calls.
type program struct {
	device   *Device
	schedule *schedule.Schedule
	lowering *lower.Lowering
	base     driver.Pointer
	closed   bool

	streams int
	prepare calls
	refresh calls // see lower.Refresh
	stale   bool  // refresh is due: the host has written such a matrix
	run     calls
	kernels []device.Kernel    // launched by a run
	nodes   [][]launch.Command // of the schedule

	events     []driver.Event // all of them
	begin, end driver.Event   // timed

	graphed  bool // replay a graph
	captured bool
	graph    driver.Graph

	feeder  *feeder  // nil: nothing was fed or started yet
	hosting *hosting // nil: no host program has called yet
}

// calls are issued together.
type calls struct {
	list  []driver.Call
	ready driver.Sequence
}

// lower lowers s without allocating memory. k need not have all knobs.
func (d *Device) lower(s *schedule.Schedule, k knob.Params) (lower.Lowering, error) {
	return d.Trace(s, k, nil)
}

// Trace lowers s as Compile does, and calls report, if it is not nil, with what each pass has found.
func (d *Device) Trace(s *schedule.Schedule, k knob.Params, report func(pass string, found []string)) (lower.Lowering, error) {
	k, err := k.Complete(d.Knobs(s))
	if err != nil {
		return lower.Lowering{}, fmt.Errorf("cuda: %w", err)
	}
	if len(persistent.Knobs(s)) > 0 {
		if err := d.probe(); err != nil {
			return lower.Lowering{}, err
		}
	}
	if err := d.ready(s); err != nil {
		return lower.Lowering{}, err
	}
	return lower.Trace(s, k, d.properties, d.networks, report)
}

// Compile implements device.Device.
func (d *Device) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	lowered, err := d.lower(s, k)
	if err != nil {
		return nil, err
	}
	p := &program{device: d, schedule: s, lowering: &lowered, streams: lower.Streams(s), graphed: lowered.Knobs["graph"] != 0}
	if p.base, err = d.driver.Alloc(p.lowering.Size()); err != nil {
		return nil, fmt.Errorf("cuda: cannot allocate %d MiB: %w", p.lowering.Size()>>20, err)
	}
	err = errors.Join(p.clear(), d.driver.Streams(p.streams), p.bind())
	if err == nil {
		err = p.try()
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// clear zeroes every matrix and the words that kernels share.
func (p *program) clear() error {
	if err := p.device.driver.Clear(append(p.lowering.Cleared(p.base), p.lowering.Shared(p.base))...); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}

// event makes an event that Close frees.
func (p *program) event(timed bool) (driver.Event, error) {
	e, err := p.device.driver.NewEvent(timed)
	if err == nil {
		p.events = append(p.events, e)
	}
	return e, err
}

// bind turns operations into launches and waits into events, and loads the kernels.
func (p *program) bind() error {
	prepare, nodes, err := p.lowering.Emit(p.base)
	if err != nil {
		return err
	}
	p.prepare.list = lower.PrepareCalls(prepare)
	refresh := lower.Refresh(p.lowering, p.base)
	p.refresh.list = lower.PrepareCalls(refresh)
	p.stale = len(p.refresh.list) > 0
	if p.run.list, err = enqueue(p, p.lowering.Calls(nodes)); err != nil {
		return err
	}
	all := slices.Concat(nodes...)
	if err := p.device.load(slices.Concat(prepare, refresh, all)); err != nil {
		return err
	}
	p.kernels, p.nodes = launch.Kernels(all), nodes
	var failed [5]error
	p.begin, failed[0] = p.event(true)
	p.end, failed[1] = p.event(true)
	p.refresh.ready, failed[2] = p.device.driver.Sequence(p.refresh.list)
	p.prepare.ready, failed[3] = p.device.driver.Sequence(p.prepare.list)
	p.run.ready, failed[4] = p.device.driver.Sequence(p.run.list)
	return errors.Join(failed[:]...)
}

// enqueue lists the calls of a run, or of a part of it, with events of the driver.
func enqueue(p *program, r lower.Run) ([]driver.Call, error) {
	list, events := r.Calls, make([]driver.Event, r.Events)
	for i := range events {
		var err error
		if events[i], err = p.event(false); err != nil {
			return nil, err
		}
	}
	for i := range list {
		if c := &list[i]; c.IsEvent() {
			c.Event = events[c.Event]
		}
	}
	return list, nil
}

// Write implements device.Program.
func (p *program) Write(m *schedule.Matrix, src []float32) error {
	if err := p.fits(m, len(src)); err != nil {
		return err
	}
	if err := p.take(m); err != nil { // rows fed before, of which src may overwrite some
		return fmt.Errorf("cuda: %w", err)
	}
	p.stale = p.stale || lower.CountsOn(p.lowering, m)
	return p.device.driver.Upload(p.base+driver.Pointer(p.lowering.Offsets[m.ID]), driver.Encode(src, p.lowering.Elements[m.ID]))
}

// Read implements device.Program.
func (p *program) Read(m *schedule.Matrix, dst []float32) error {
	if err := p.fits(m, len(dst)); err != nil {
		return err
	}
	at, e := p.base+driver.Pointer(p.lowering.Offsets[m.ID]), p.lowering.Elements[m.ID]
	if e == driver.Single {
		return p.device.driver.Download(driver.Bytes(dst), at)
	}
	narrow := make([]byte, 2*len(dst))
	if err := p.device.driver.Download(narrow, at); err != nil {
		return err
	}
	driver.Decode(dst, narrow, e)
	return nil
}

func (p *program) fits(m *schedule.Matrix, n int) error {
	rows := min(n/m.Cols, m.Rows)
	switch {
	case p.closed:
		return errClosed
	case m.Private():
		return fmt.Errorf("cuda: matrix %s is packed or scratch: it can be neither written nor read", m.Name)
	case n == 0 || n != rows*m.Cols:
		return fmt.Errorf("cuda: matrix %s is %d×%d: %d elements are no whole number of its rows", m.Name, m.Rows, m.Cols, n)
	}
	return nil
}

var errClosed = errors.New("cuda: the program is closed")

// Close implements device.Program.
func (p *program) Close() error {
	if p.closed {
		return nil
	}
	p.closed = true
	errs := []error{p.feeder.free(p), p.hosting.free(p)}
	if p.captured {
		errs = append(errs, p.device.driver.FreeGraph(p.graph))
	}
	for _, e := range p.events {
		errs = append(errs, p.device.driver.FreeEvent(e))
	}
	errs = append(errs, p.device.driver.FreeSequence(p.prepare.ready), p.device.driver.FreeSequence(p.run.ready), p.device.driver.FreeSequence(p.refresh.ready))
	return errors.Join(append(errs, p.device.driver.Free(p.base))...)
}

// issue issues calls.
func (p *program) issue(c *calls) error {
	if at, err := p.device.driver.Issue(c.ready); err != nil {
		return fmt.Errorf("cuda: %v: %w", &c.list[at], err)
	}
	return nil
}

// Kernels implements device.Program.
func (p *program) Kernels() []device.Kernel { return p.kernels }

// Prepare implements device.Program.
func (p *program) Prepare() error {
	if p.closed {
		return errClosed
	}
	if err := p.issue(&p.prepare); err != nil {
		return err
	}
	return p.settle()
}

// refreshStale runs refresh if it is due.
func refreshStale(p *program) error {
	if !p.stale {
		return nil
	}
	p.stale = false
	return p.issue(&p.refresh)
}

// settle waits for stream 0 and returns the errors that kernels reported.
func (p *program) settle() error {
	d := p.device.driver
	if err := errors.Join(d.Record(p.end, 0), d.Await(p.end)); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return p.checkStatus()
}

// checkStatus returns the error in the status word, after all kernels have ended.
func (p *program) checkStatus() error {
	var word [4]byte
	if err := p.device.driver.Download(word[:], p.base+driver.Pointer(p.lowering.StatusOffset)); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return p.statusError(word)
}

// statusError converts a status word to an error, and clears the word on the GPU.
func (p *program) statusError(word [4]byte) error {
	status := binary.LittleEndian.Uint32(word[:])
	if status == 0 {
		return nil
	}
	if err := p.device.driver.Clear(p.lowering.Shared(p.base)); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	switch status {
	case badIndex:
		return errors.New("cuda: an index is outside its table: inputs of a one-hot layer and targets must be integers from 0")
	case tooLarge:
		return errors.New("cuda: a recurrent weight or a state is beyond 65504, which tensor cores cannot multiply: set tensor=2")
	}
	return fmt.Errorf("cuda: %w", device.ErrStuck)
}

// Values of the status word: see codegen/common.cu.
const (
	badIndex = 1
	tooLarge = 3
)

// capture makes the graph of a run, once.
func (p *program) capture() error {
	if p.captured {
		return nil
	}
	g, err := capture(p, &p.run)
	if err == nil {
		p.graph, p.captured = g, true
	}
	return err
}

// capture makes a graph of what c issues.
func capture(p *program, c *calls) (driver.Graph, error) {
	d := p.device.driver
	if err := d.BeginCapture(); err != nil {
		return 0, err
	}
	failed := p.issue(c)
	g, err := d.EndCapture()
	if err == nil && failed != nil { // the graph is incomplete
		err = d.FreeGraph(g)
	}
	return g, errors.Join(failed, err)
}

// Run implements device.Program.
func (p *program) Run(n int) (device.Sample, error) {
	if p.closed {
		return device.Sample{}, errClosed
	}
	d := p.device.driver
	run := func() error { return p.issue(&p.run) }
	if p.graphed {
		if err := p.capture(); err != nil {
			return device.Sample{}, fmt.Errorf("cuda: capturing a graph: %w", err)
		}
		run = func() error { return d.Replay(p.graph) }
	}
	if err := refreshStale(p); err != nil {
		return device.Sample{}, err
	}
	start := time.Now()
	if err := d.Record(p.begin, 0); err != nil {
		return device.Sample{}, fmt.Errorf("cuda: %w", err)
	}
	for range n {
		if err := run(); err != nil {
			return device.Sample{}, err
		}
	}
	if err := errors.Join(d.Record(p.end, 0), d.Await(p.end)); err != nil {
		return device.Sample{}, fmt.Errorf("cuda: %w", err)
	}
	b := device.Sample{Wall: time.Since(start), Throttled: d.Throttled()}
	if c, ok := d.(driver.Clocked); ok {
		b.Clock = c.Clock()
	}
	seconds, err := d.Elapsed(p.begin, p.end)
	if err != nil {
		return b, fmt.Errorf("cuda: %w", err)
	}
	b.Device = time.Duration(seconds * 1e9)
	return b, p.checkStatus()
}
