package worker

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"syscall"

	"rnnbench/device"
	"rnnbench/rnn/schedule"
)

// Serve answers calls read from r on w until r ends. It opens the device that the first call names
// with open, and makes every call to it on the calling goroutine. If r ends during a call, the
// parent is gone, and Serve calls abandon from another goroutine: a call that hangs must not
// outlive the parent.
//
// Serve takes over the process's signals. It ignores interrupts, hang-ups and terminations, since
// terminals and shells send them to the parent as well, and the parent ends the worker.
func Serve(r io.Reader, w io.Writer, open func(name string) (device.Device, error), abandon func()) error {
	signal.Ignore(os.Interrupt, syscall.SIGHUP, syscall.SIGTERM)
	return serve(r, w, open, abandon)
}

func serve(r io.Reader, w io.Writer, open func(name string) (device.Device, error), abandon func()) error {
	out := bufio.NewWriter(w)
	if _, err := out.WriteString(greeting); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	s := server{open: open, programs: map[int]program{}, known: map[int]*schedule.Schedule{}, enc: gob.NewEncoder(out), out: out}
	defer s.close()
	calls := make(chan call)
	var failed error
	go func() {
		defer close(calls)
		in := bufio.NewReaderSize(pollable(r), 1<<16)
		dec := gob.NewDecoder(in)
		var matrix []float32
		for {
			var c call
			if err := dec.Decode(&c.request); err != nil {
				if err != io.EOF {
					failed = err
				}
				break
			}
			if slices.Contains([]int{callWrite, callCalls, callFeed}, c.Call) && !c.Window {
				var err error
				if matrix, err = readMatrix(in, matrix[:0], c.Size); err != nil { // the previous call's values are copied by now
					failed = err
					break
				}
				c.data = matrix
			}
			s.busy.Store(true)
			calls <- c
		}
		if s.busy.Load() {
			abandon()
		}
	}()
	for c := range calls {
		if err := s.answer(c); err != nil {
			return err
		}
	}
	return failed
}

// readMatrix reads a matrix of so many bytes. It allocates memory as data arrives, so that a false
// size cannot exhaust memory.
func readMatrix(r io.Reader, matrix []float32, bytes int) ([]float32, error) {
	const piece = 1 << 22
	if bytes < 0 || bytes%4 != 0 {
		return nil, fmt.Errorf("worker: a matrix cannot have %d bytes", bytes)
	}
	for n := bytes / 4; len(matrix) < n; {
		from := len(matrix)
		more := min(n-from, max(piece, cap(matrix)-from))
		matrix = slices.Grow(matrix, more)[:from+more]
		if _, err := io.ReadFull(r, bytesOf(matrix[from:])); err != nil {
			return nil, err
		}
	}
	return matrix, nil
}

// A call is a request with the values that follow it.
type call struct {
	request
	data []float32
}

// A program is a compiled schedule.
type program struct {
	device.Program
	schedule *schedule.Schedule
}

type server struct {
	open     func(name string) (device.Device, error)
	device   device.Device
	known    map[int]*schedule.Schedule
	programs map[int]program
	next     int
	busy     atomic.Bool // a call is being made whose answer has not been sent
	window   *window     // nil: data goes through the pipe
	enc      *gob.Encoder
	out      *bufio.Writer
}

func (s *server) close() {
	for _, p := range s.programs {
		_ = p.Close() // the process ends anyway
	}
	if s.device != nil {
		_ = s.device.Close()
	}
}

func (s *server) answer(c call) error {
	var r response
	data, err := s.do(c, &r)
	if err != nil {
		r.fail(err)
		data = nil
	}
	r.Size = 4 * len(data)
	s.busy.Store(false) // before the parent can have read the answer and ended
	if err := s.enc.Encode(&r); err != nil {
		return err
	}
	if _, err := s.out.Write(bytesOf(data)); err != nil {
		return err
	}
	return s.out.Flush()
}

// do makes call c and fills in r. The data follows the answer through the pipe.
func (s *server) do(c call, r *response) (data []float32, err error) {
	switch {
	case c.Call == callOpen:
		return nil, s.begin(c, r)
	case s.device == nil:
		return nil, errors.New("worker: no device is open")
	}
	about, err := s.about(c)
	if err != nil {
		return nil, err
	}
	if about == nil && slices.Contains([]int{callKnobs, callMemory, callCompile, callPrecompile, callExplain, callPredict}, c.Call) {
		return nil, errors.New("worker: the call names no schedule")
	}
	switch c.Call {
	case callInfo:
		r.Info = s.info()
	case callKnobs:
		r.Knobs = s.device.Knobs(about)
	case callMemory:
		r.Memory, err = s.device.Memory(about, c.Knobs)
	case callCompile:
		err = s.compile(c, about, r)
	case callPrecompile:
		if a, ok := s.device.(device.Precompiler); ok {
			a.Precompile(about, c.Knobs)
		}
	case callExplain:
		if x, ok := s.device.(device.Explainer); ok {
			r.Explained, err = x.Explain(about, c.Knobs)
		}
	case callPredict:
		if x, ok := s.device.(device.Predictor); ok {
			r.Predicted, err = x.Predict(about, c.Knobs)
		}
	case callLimits, callHierarchy, callInspect, callEvict, callPower, callLaunchTime, callProvoke:
		err = s.optional(c, r)
	default:
		return s.run(c, r)
	}
	return nil, err
}

// info describes the device and the build of this worker.
func (s *server) info() device.Info {
	i := s.device.Info()
	i.Build = Build()
	return i
}

// begin opens the device and, if the parent has one, the window.
func (s *server) begin(c call, r *response) (err error) {
	if s.device, err = s.open(c.Name); err != nil {
		return err
	}
	r.Info, r.Knobs = s.info(), s.device.Vocabulary()
	if c.Window {
		w, err := openWindow()
		if r.Window = err == nil; r.Window {
			s.window = w
		}
	}
	return nil
}

func (s *server) compile(c call, about *schedule.Schedule, r *response) error {
	p, err := s.device.Compile(about, c.Knobs)
	if err == nil {
		s.next++
		s.programs[s.next] = program{p, about}
		r.Program, r.Kernels = s.next, p.Kernels()
		_, r.Fed = p.(device.Fed)
	}
	return err
}

// optional makes a call that only some devices support.
func (s *server) optional(c call, r *response) (err error) {
	switch c.Call {
	case callLimits:
		if m, ok := s.device.(device.Meter); ok {
			r.Limits, err = m.Limits()
		}
	case callHierarchy:
		if h, ok := s.device.(device.Prober); ok {
			r.Hierarchy, err = h.Hierarchy()
		}
	case callInspect:
		if i, ok := s.device.(device.Inspector); ok {
			r.Findings, err = i.Inspect()
		}
	case callPower:
		m, ok := s.device.(device.PowerMeter)
		if !ok {
			return errors.New("worker: the device has no energy meter")
		}
		r.Power, err = m.Power()
	case callLaunchTime:
		if m, ok := s.device.(device.LaunchMeter); ok {
			r.Launch, err = m.LaunchTime()
		}
	case callEvict:
		e, ok := s.device.(device.Evicter)
		if !ok {
			return errors.New("worker: the device cannot empty its caches")
		}
		err = e.Evict()
	case callProvoke:
		p, ok := s.device.(Provoker)
		if !ok {
			return fmt.Errorf("worker: the device cannot provoke %s", c.Name)
		}
		err = p.Provoke(c.Name)
	}
	return err
}

// run makes a call of a program.
func (s *server) run(c call, r *response) (data []float32, err error) {
	p, ok := s.programs[c.Program]
	if !ok || c.Matrix < 0 || c.Matrix >= len(p.schedule.Matrices) {
		return nil, fmt.Errorf("worker: unknown program %d with matrix %d", c.Program, c.Matrix)
	}
	switch c.Call {
	case callWrite, callRead:
		return s.move(p, p.schedule.Matrices[c.Matrix], c)
	case callPrepare:
		return nil, p.Prepare()
	case callRun: // without garbage collection meanwhile
		if c.Runs < 1 {
			return nil, fmt.Errorf("worker: %d runs requested: at least one is needed", c.Runs)
		}
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		r.Sample, err = p.Run(c.Runs)
		return nil, err
	case callCalls:
		return nil, s.calls(p, c, r)
	case callFeed, callStart, callWait:
		return nil, s.fed(p, c)
	case callFree:
		delete(s.programs, c.Program)
		return nil, p.Close()
	}
	return nil, fmt.Errorf("worker: unknown call %d", c.Call)
}

// about returns the schedule that c is about, or nil.
func (s *server) about(c call) (*schedule.Schedule, error) {
	for _, n := range c.Forget {
		delete(s.known, n)
	}
	if c.Text != nil {
		read := &schedule.Schedule{}
		if err := read.UnmarshalBinary(c.Text); err != nil {
			return nil, err
		}
		s.known[c.Schedule] = read
	}
	found, ok := s.known[c.Schedule]
	if !ok && c.Schedule != 0 {
		return nil, fmt.Errorf("worker: unknown schedule %d", c.Schedule)
	}
	return found, nil
}

// move writes or reads a matrix. The data follows the answer through the pipe.
func (s *server) move(p device.Program, m *schedule.Matrix, c call) (data []float32, err error) {
	switch {
	case c.Size < 0 || c.Size%4 != 0 || c.Size/4 > m.Elements():
		return nil, fmt.Errorf("worker: %d bytes do not match matrix %s", c.Size, m.Name)
	case c.Window && s.window == nil:
		return nil, errors.New("worker: no shared memory")
	case c.Window:
		if c.data, err = s.window.reach(c.Size/4, false); err != nil {
			return nil, err
		}
	case c.Call == callRead:
		c.data = make([]float32, c.Size/4)
		data = c.data
	}
	if c.Call == callWrite {
		return nil, p.Write(m, c.data)
	}
	return data, p.Read(m, c.data)
}
