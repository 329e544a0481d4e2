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
	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A program is a schedule with its memory and its launches.
type program struct {
	device   *Device
	schedule *schedule.Schedule
	layout   *layout
	base     driver.Pointer
	closed   bool

	streams int
	prepare calls
	run     calls

	events     []driver.Event // all of them
	begin, end driver.Event   // timed

	graphed  bool // replay a graph
	captured bool
	graph    driver.Graph
}

// calls are made together.
type calls struct {
	list  []driver.Call
	ready driver.Sequence
}

// binder lays s out, with the settings of knobs completed, before there is memory.
func (d *Device) binder(s *schedule.Schedule, k knob.Params) (*binder, error) {
	k, err := k.Complete(d.Knobs(s))
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	if len(persistent.Knobs(s)) > 0 {
		if err := d.probe(); err != nil {
			return nil, err
		}
	}
	if err := d.ready(s); err != nil {
		return nil, err
	}
	return newBinder(s, k, d.properties, d.networks)
}

// Compile implements device.Device.
func (d *Device) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	b, err := d.binder(s, k)
	if err != nil {
		return nil, err
	}
	p := &program{device: d, schedule: s, layout: b.layout, streams: streams(s), graphed: b.Knobs["graph"] != 0}
	if p.base, err = d.driver.Alloc(p.layout.total); err != nil {
		return nil, fmt.Errorf("cuda: cannot allocate %d MiB: %w", p.layout.total>>20, err)
	}
	b.Base = p.base
	err = errors.Join(p.clear(), d.driver.Streams(p.streams), p.bind(b))
	if err == nil && b.Knobs["pick"] != 0 { // trying algorithms has written to results
		err = p.clear()
	}
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
	parts := []driver.Extent{p.control()}
	for i, m := range p.schedule.Matrices {
		parts = append(parts, driver.Extent{At: p.base + driver.Pointer(p.layout.Offsets[i]), Bytes: int64(m.Elements() * p.layout.Elements[i].Bytes())})
	}
	for _, s := range p.layout.spaces {
		parts = append(parts, driver.Extent{At: p.base + driver.Pointer(s.at), Bytes: s.bytes})
	}
	if err := p.device.driver.Clear(parts...); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}

// control is where the words are that kernels share.
func (p *program) control() driver.Extent {
	return driver.Extent{At: p.base + driver.Pointer(p.layout.control), Bytes: p.layout.total - p.layout.control}
}

// event makes an event that Close frees.
func (p *program) event(timed bool) (driver.Event, error) {
	e, err := p.device.driver.NewEvent(timed)
	if err == nil {
		p.events = append(p.events, e)
	}
	return e, err
}

// bind turns operations into launches and waits into events.
func (p *program) bind(b *binder) error {
	prepare, nodes, err := b.bound(p.schedule)
	if err != nil {
		return err
	}
	p.prepare.add(0, prepare)
	if err := p.enqueue(nodes); err != nil {
		return err
	}
	if err := p.device.load(append(prepare, slices.Concat(nodes...)...)); err != nil {
		return err
	}
	var failed [4]error
	p.begin, failed[0] = p.event(true)
	p.end, failed[1] = p.event(true)
	p.prepare.ready, failed[2] = p.device.driver.Sequence(p.prepare.list)
	p.run.ready, failed[3] = p.device.driver.Sequence(p.run.list)
	return errors.Join(failed[:]...)
}

// add has a stream do steps.
func (c *calls) add(stream int, steps []launch.Command) {
	for _, s := range steps {
		c.list = append(c.list, driver.Call{Stream: stream, Launch: s.Launch, Product: s.Product, Network: s.Network})
	}
}

// enqueue lists what a run calls for the steps of each node. The other streams start
// after stream 0's past and stream 0 ends after them.
func (p *program) enqueue(nodes [][]launch.Command) error {
	signals, err := p.signals()
	if err != nil {
		return err
	}
	r, count := &p.run, 4*p.streams+len(signals)
	for i, n := range nodes {
		count += len(n) + len(p.schedule.Nodes[i].Wait)
	}
	r.list = make([]driver.Call, 0, count)
	if p.streams > 1 {
		fork, err := p.event(false)
		if err != nil {
			return err
		}
		r.list = append(r.list, driver.Call{Event: fork})
		for s := 1; s < p.streams; s++ {
			r.list = append(r.list, driver.Call{Stream: s, Event: fork, Wait: true})
		}
	}
	// Per stream, whether the last step lets the next begin. Behind any other step
	// a launch waits, so that a chain of early ones has all before it done.
	early := map[int]bool{}
	waits := 0 // of this node, or of the product and cell that are one
	for i, n := range p.schedule.Nodes {
		stream := n.Stream % launch.MaxStreams
		for _, j := range n.Wait {
			if p.schedule.Nodes[j].Stream%launch.MaxStreams != stream {
				r.list = append(r.list, driver.Call{Stream: stream, Event: signals[j], Wait: true})
				waits++
			}
		}
		if steps := nodes[i]; len(steps) > 0 {
			if first := &steps[0]; first.Early {
				first.Launch.Early = waits == 0 && early[stream]
			}
			for k := 1; k < len(steps); k++ {
				if steps[k].Early {
					steps[k].Launch.Early = steps[k-1].Early
				}
			}
			early[stream] = steps[len(steps)-1].Early
		} else if waits > 0 {
			early[stream] = false
		}
		r.add(stream, nodes[i])
		if p.layout.Fused[i] {
			continue
		}
		waits = 0
		for j := i; j == i || j >= 0 && p.layout.Fused[j]; j-- {
			if e, ok := signals[j]; ok {
				r.list = append(r.list, driver.Call{Stream: stream, Event: e})
			}
		}
	}
	for s := 1; s < p.streams; s++ {
		join, err := p.event(false)
		if err != nil {
			return err
		}
		r.list = append(r.list, driver.Call{Stream: s, Event: join}, driver.Call{Event: join, Wait: true})
	}
	return nil
}

// signals are the events of the nodes that others on other streams wait for.
func (p *program) signals() (map[int]driver.Event, error) {
	at := map[int]driver.Event{}
	for _, n := range p.schedule.Nodes {
		for _, j := range n.Wait {
			if _, ok := at[j]; ok || (p.schedule.Nodes[j].Stream-n.Stream)%launch.MaxStreams == 0 {
				continue
			}
			var err error
			if at[j], err = p.event(false); err != nil {
				return nil, err
			}
		}
	}
	return at, nil
}

// Write implements device.Program.
func (p *program) Write(m *schedule.Matrix, src []float32) error {
	if err := p.fits(m, min(len(src)/m.Cols, m.Rows), len(src)); err != nil {
		return err
	}
	return p.device.driver.Upload(p.base+driver.Pointer(p.layout.Offsets[m.ID]), driver.Encode(src, p.layout.Elements[m.ID]))
}

// Read implements device.Program.
func (p *program) Read(m *schedule.Matrix, dst []float32) error {
	if err := p.fits(m, m.Rows, len(dst)); err != nil {
		return err
	}
	at, e := p.base+driver.Pointer(p.layout.Offsets[m.ID]), p.layout.Elements[m.ID]
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

func (p *program) fits(m *schedule.Matrix, rows, n int) error {
	switch {
	case p.closed:
		return errClosed
	case m.Private():
		return fmt.Errorf("cuda: matrix %s is packed or scratch: it can be neither written nor read", m.Name)
	case n == 0 || n != rows*m.Cols:
		return fmt.Errorf("cuda: matrix %s is %d×%d: %d elements are not its rows", m.Name, m.Rows, m.Cols, n)
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
	var errs []error
	if p.captured {
		errs = append(errs, p.device.driver.FreeGraph(p.graph))
	}
	for _, e := range p.events {
		errs = append(errs, p.device.driver.FreeEvent(e))
	}
	errs = append(errs, p.device.driver.FreeSequence(p.prepare.ready), p.device.driver.FreeSequence(p.run.ready))
	return errors.Join(append(errs, p.device.driver.Free(p.base))...)
}

// issue makes calls.
func (p *program) issue(c *calls) error {
	if at, err := p.device.driver.Issue(c.ready); err != nil {
		return fmt.Errorf("cuda: %v: %w", &c.list[at], err)
	}
	return nil
}

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

// settle waits for stream 0 and reports what kernels had to tell.
func (p *program) settle() error {
	d := p.device.driver
	if err := errors.Join(d.Record(p.end, 0), d.Await(p.end)); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return p.told()
}

// told is what kernels that are done had to tell.
func (p *program) told() error {
	d := p.device.driver
	var word [4]byte
	if err := d.Download(word[:], p.base+driver.Pointer(p.layout.StatusOffset)); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	trouble := binary.LittleEndian.Uint32(word[:])
	if trouble == 0 {
		return nil
	}
	if err := p.device.driver.Clear(p.control()); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	switch trouble {
	case badIndex:
		return errors.New("cuda: an index is outside its table: inputs of a one-hot layer and targets must be integers from 0")
	case tooLarge:
		return errors.New("cuda: a recurrent weight or a state is beyond 65504, which tensor cores cannot multiply: set tensor=2")
	}
	return errors.New("cuda: blocks of a kernel waited for each other in vain")
}

// What kernels tell: see kernels/common.cu.
const (
	badIndex = 1
	tooLarge = 3
)

// capture makes a graph of a run, unless that is done.
func (p *program) capture() error {
	if p.captured {
		return nil
	}
	d := p.device.driver
	if err := d.BeginCapture(); err != nil {
		return err
	}
	failed := p.issue(&p.run)
	g, err := d.EndCapture()
	switch {
	case err == nil && failed != nil: // it is of a part
		err = d.FreeGraph(g)
	case err == nil:
		p.graph, p.captured = g, true
	}
	return errors.Join(failed, err)
}

// Run implements device.Program.
func (p *program) Run(n int) (device.Burst, error) {
	if p.closed {
		return device.Burst{}, errClosed
	}
	d := p.device.driver
	run := func() error { return p.issue(&p.run) }
	if p.graphed {
		if err := p.capture(); err != nil {
			return device.Burst{}, fmt.Errorf("cuda: capturing a graph: %w", err)
		}
		run = func() error { return d.Replay(p.graph) }
	}
	start := time.Now()
	if err := d.Record(p.begin, 0); err != nil {
		return device.Burst{}, fmt.Errorf("cuda: %w", err)
	}
	for range n {
		if err := run(); err != nil {
			return device.Burst{}, err
		}
	}
	if err := errors.Join(d.Record(p.end, 0), d.Await(p.end)); err != nil {
		return device.Burst{}, fmt.Errorf("cuda: %w", err)
	}
	b := device.Burst{Wall: time.Since(start), Throttled: d.Throttled()}
	seconds, err := d.Elapsed(p.begin, p.end)
	if err != nil {
		return b, fmt.Errorf("cuda: %w", err)
	}
	b.Device = time.Duration(seconds * 1e9)
	return b, p.told()
}
