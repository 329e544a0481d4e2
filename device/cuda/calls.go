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
	"rnnbench/rnn/schedule"
)

// Call implements device.Caller. Inputs and outputs lie as the GPU stores them, in host memory that
// it can reach. Copies and runs follow each other on stream 0. They are issued together or, with
// the knob graph, as one graph, since the host's time between launches of a few microseconds would
// count. The host waits once per call. The time of a run is that between the two copies, by the
// GPU's clock or two events.
func (p *program) Call(c device.Calls) (all device.Called, err error) {
	if err := errors.Join(c.Check(), p.fits(c.In, c.Each), p.fits(c.Out, c.Read)); err != nil {
		return all, err
	}
	s, err := serve(p, c)
	defer func() { err = errors.Join(err, s.close()) }()
	if err != nil {
		return all, err
	}
	all.Wall, all.Run = make([]time.Duration, c.N), make([]time.Duration, c.N)
	for i := range c.N {
		start := time.Now()
		if err := s.once(i); err != nil {
			return all, err
		}
		all.Wall[i] = time.Since(start)
		if all.Run[i], err = s.runTime(); err != nil {
			return all, err
		}
	}
	all.Throttled = p.device.driver.Throttled()
	return all, p.checkStatus()
}

// A server is a program with what its calls need.
type server struct {
	*program
	inputs  []byte // of all calls, as the GPU stores them
	in, out []byte // of one call, in host memory that the GPU can reach
	clock   []byte // in host memory, too: where copying kernels write the time; nil: events measure it
	done    driver.Event
	call    calls
	undo    []func() error
}

// serve prepares the calls of c. The caller must call close, even after an error.
func serve(p *program, c device.Calls) (*server, error) {
	d, e := p.device.driver, p.lowering.Elements[c.In.ID]
	s := &server{program: p, inputs: driver.Encode(c.Inputs, e)}
	var err error
	memory := func(bytes int) []byte {
		var m []byte
		if err == nil {
			m, err = d.HostMemory(bytes)
		}
		if err == nil {
			s.undo = append(s.undo, func() error { return d.FreeHostMemory(m) })
		}
		return m
	}
	s.in, s.out = memory(c.Each*e.Bytes()), memory(c.Read*p.lowering.Elements[c.Out.ID].Bytes())
	if smallCopy(len(s.in)) && smallCopy(len(s.out)) {
		s.clock = memory(16)
	}
	if err == nil {
		s.done, err = d.NewEvent(false)
	}
	if err != nil {
		return s, fmt.Errorf("cuda: %w", err)
	}
	s.undo = append(s.undo, func() error { return d.FreeEvent(s.done) })
	if s.call.list, err = s.steps(c); err != nil {
		return s, err
	}
	if p.graphed {
		if err := s.capture(); err != nil {
			return s, fmt.Errorf("cuda: capturing a graph: %w", err)
		}
	}
	s.call.list = append(s.call.list, driver.Call{Event: s.done})
	return s, s.ready()
}

// steps returns the work of the GPU for a call. Small copies are made by kernels, which also note
// the time: the copy engine and timed events take some microseconds to start and end.
func (s *server) steps(c device.Calls) ([]driver.Call, error) {
	p := s.program
	in, out := &driver.Copy{GPU: p.address(c.In), Host: s.in}, &driver.Copy{GPU: p.address(c.Out), Host: s.out, Out: true}
	if s.clock != nil {
		kernels := []launch.Command{lower.Carry(p.lowering, in, s.clock[:8]), lower.Carry(p.lowering, out, s.clock[8:])}
		if err := p.device.load(kernels); err != nil {
			return nil, err
		}
		return slices.Concat([]driver.Call{{Launch: kernels[0].Launch}}, p.run.list, []driver.Call{{Launch: kernels[1].Launch}}), nil
	}
	return slices.Concat([]driver.Call{{Copy: in}, {Event: p.begin, Outside: p.graphed}}, p.run.list,
		[]driver.Call{{Event: p.end, Outside: p.graphed}, {Copy: out}}), nil
}

// smallCopy reports whether kernels copy so many bytes.
func smallCopy(bytes int) bool { return bytes%4 == 0 && bytes <= 1<<16 }

// runTime returns the time of the latest run.
func (s *server) runTime() (time.Duration, error) {
	if s.clock != nil {
		begin, end := binary.LittleEndian.Uint64(s.clock), binary.LittleEndian.Uint64(s.clock[8:])
		return time.Duration(end - begin), nil
	}
	seconds, err := s.device.driver.Elapsed(s.begin, s.end)
	if err != nil {
		return 0, fmt.Errorf("cuda: %w", err)
	}
	return time.Duration(seconds * 1e9), nil
}

// ready prepares the driver calls of a call.
func (s *server) ready() error {
	d := s.device.driver
	ready, err := d.Sequence(s.call.list)
	if err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	s.call.ready = ready
	s.undo = append(s.undo, func() error { return d.FreeSequence(ready) })
	return nil
}

// capture makes one graph of all that a call issues.
func (s *server) capture() error {
	if err := s.ready(); err != nil {
		return err
	}
	g, err := capture(s.program, &s.call)
	if err != nil {
		return err
	}
	s.undo = append(s.undo, func() error { return s.device.driver.FreeGraph(g) })
	s.call.list = []driver.Call{{Graph: &g}}
	return nil
}

// once makes call number i and waits for its output.
func (s *server) once(i int) error {
	each := len(s.in)
	copy(s.in, s.inputs[i%(len(s.inputs)/each)*each:])
	if err := s.issue(&s.call); err != nil {
		return err
	}
	if err := s.device.driver.Await(s.done); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}

func (s *server) close() error {
	var errs []error
	for _, undo := range slices.Backward(s.undo) {
		errs = append(errs, undo())
	}
	return errors.Join(errs...)
}

// address returns the address of m.
func (p *program) address(m *schedule.Matrix) driver.Pointer {
	return p.base + driver.Pointer(p.lowering.Offsets[m.ID])
}
