package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"rnnbench/device"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Options say which worker to start and how long to wait for it.
type Options struct {
	Command func() *exec.Cmd // the worker, not yet started
	Device  string           // that the worker opens
	Timeout time.Duration    // for a call or a run of a program, before the worker counts as hung; 0: a minute
	Start   time.Duration    // for the greeting of a new worker, and for opening its device; 0: a minute
}

// A Device is a device in another process.
type Device struct {
	o          Options
	process    *process // nil: not running
	generation int      // number of processes started
	info       device.Info
	vocabulary []knob.Knob
	known      []known // schedules that the process has, the newest last
	numbered   int     // number of schedules so far
	window     *window // nil: there is no window
	shared     bool    // the process has mapped the window, too
}

// Open starts a worker and has it open the device.
func Open(o Options) (*Device, error) {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	if o.Start == 0 {
		o.Start = time.Minute
	}
	d := &Device{o: o}
	if err := d.start(); err != nil {
		return nil, err
	}
	return d, nil
}

// Ready starts a worker if none is running.
func (d *Device) Ready() error { return d.start() }

// start starts a worker if none is running. A worker that fails to start is killed within the time
// limits of Options.
func (d *Device) start() error {
	if d.process != nil {
		return nil
	}
	cmd := d.o.Command()
	if d.window == nil {
		d.window, _ = newWindow() // without a window, data goes through the pipe
	}
	if d.window != nil {
		cmd.ExtraFiles = []*os.File{d.window.file} // windowFile
	}
	p, err := startProcess(cmd)
	if err != nil {
		return &remoteError{err.Error(), device.ErrStart}
	}
	d.process, d.known, d.shared = p, nil, false
	d.generation++
	err = d.guard(d.o.Start, func() error {
		line, err := p.greeting()
		if err == nil && line == greeting {
			return nil
		}
		rest := p.lastWords()
		p.kill()
		p.reap()
		return fmt.Errorf("worker: %s failed to start: %s", p.cmd.Path, oneLine(line+rest+p.errors.String()))
	})
	if err != nil {
		d.process = nil
		return &remoteError{err.Error(), device.ErrStart}
	}
	r, err := d.call(d.o.Start, request{Call: callOpen, Name: d.o.Device, Window: d.window != nil}, nil, nil)
	if err != nil {
		d.stop()
		return &remoteError{err.Error(), device.ErrStart}
	}
	d.info, d.vocabulary, d.shared = r.Info, r.Knobs, r.Window
	return nil
}

func oneLine(s string) string {
	if s = strings.Join(strings.Fields(s), " "); s == "" {
		return "it printed nothing"
	}
	return s
}

// guard runs f, which talks to the process, and kills the process if f exceeds the limit.
func (d *Device) guard(limit time.Duration, f func() error) error {
	p := d.process
	timer := time.AfterFunc(limit, p.kill)
	err := f()
	late := !timer.Stop()
	var remote *remoteError
	switch {
	case late: // the process was killed, whatever f returned
		d.process = nil
		p.reap()
		return fmt.Errorf("worker: no answer within %v, so the worker was killed: %w", limit.Round(10*time.Millisecond), device.ErrHang)
	case err == nil || errors.As(err, &remote):
		return err
	case errors.Is(err, errBroken):
		d.process = nil
		return fmt.Errorf("worker: %w", p.ending(err))
	}
	return err
}

var (
	errBroken   = errors.New("broken pipe")
	errNonsense = fmt.Errorf("it sent an invalid answer and was killed: %w", errBroken)
)

// call sends a request, followed by the values of out, and waits for the answer. It reads the
// values that follow the answer into in.
func (d *Device) call(limit time.Duration, q request, out, in []float32) (response, error) {
	var r response
	if d.process == nil {
		return r, errors.New("worker: it is closed")
	}
	limit += transfer(len(out) + len(in))
	p := d.process
	err := d.guard(limit, func() error {
		if !q.Window {
			q.Size = 4 * (len(out) + len(in))
		}
		err := errors.Join(p.enc.Encode(&q), write(p.out, bytesOf(out)), p.out.Flush())
		if err == nil {
			err = p.receive(&r)
		}
		if errors.Is(err, errNonsense) {
			return err
		}
		if err != nil {
			return errBroken
		}
		if err := r.err(); err != nil {
			return err
		}
		if r.Size != 4*len(in) { // the next bytes would not be an answer
			return errNonsense
		}
		if _, err := io.ReadFull(p.in, bytesOf(in)); err != nil {
			return errBroken
		}
		return nil
	})
	if errors.Is(err, device.ErrFault) && d.process != nil { // a device that failed stays broken
		d.stop()
	}
	return r, err
}

// transfer is the time limit for n elements: 80 MB/s.
func transfer(n int) time.Duration { return time.Duration(n) * 50 * time.Nanosecond }

func write(w io.Writer, b []byte) error {
	_, err := w.Write(b)
	return err
}

// A known schedule is one that the worker has, under a number.
type known struct {
	schedule *schedule.Schedule
	number   int
}

// knownOperations limits the operations of all known schedules together. A point's candidates are
// asked about several times each.
const knownOperations = 1 << 16

// about makes a call about s. It sends s along unless the worker has it.
func (d *Device) about(limit time.Duration, q request, s *schedule.Schedule) (response, error) {
	if err := d.start(); err != nil {
		return response{}, err
	}
	i := slices.IndexFunc(d.known, func(k known) bool { return k.schedule == s })
	if i >= 0 {
		q.Schedule = d.known[i].number
		return d.call(limit, q, nil, nil)
	}
	var err error
	if q.Text, err = s.MarshalBinary(); err != nil {
		return response{}, err
	}
	d.numbered++
	q.Schedule = d.numbered
	d.known = append(d.known, known{s, d.numbered})
	from := len(d.known) - 1
	for operations := len(s.Nodes); from > 0; from-- {
		if operations += len(d.known[from-1].schedule.Nodes); operations > knownOperations {
			break
		}
	}
	for _, k := range d.known[:from] {
		q.Forget = append(q.Forget, k.number)
	}
	d.known = slices.Delete(d.known, 0, from)
	return d.call(limit, q, nil, nil)
}

// Info implements device.Device.
func (d *Device) Info() device.Info {
	if d.process != nil {
		if r, err := d.call(d.o.Timeout, request{Call: callInfo}, nil, nil); err == nil {
			d.info = r.Info
		}
	}
	return d.info
}

// Knobs implements device.Device. If the worker has ended, it is restarted once. If the call fails
// again, the result is nil.
func (d *Device) Knobs(s *schedule.Schedule) []knob.Knob {
	for range 2 {
		if r, err := d.about(d.o.Timeout, request{Call: callKnobs}, s); err == nil {
			return r.Knobs
		}
	}
	return nil
}

// Vocabulary implements device.Device.
func (d *Device) Vocabulary() []knob.Knob { return d.vocabulary }

// Memory implements device.Device.
func (d *Device) Memory(s *schedule.Schedule, k knob.Params) (int64, error) {
	r, err := d.about(d.o.Timeout, request{Call: callMemory, Knobs: k}, s)
	return r.Memory, err
}

// compiling times Options.Timeout is the time limit for calls that may compile kernels.
const compiling = 10

// Compile implements device.Device.
func (d *Device) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	r, err := d.about(compiling*d.o.Timeout, request{Call: callCompile, Knobs: k}, s)
	if err != nil {
		return nil, err
	}
	p := &remote{device: d, generation: d.generation, id: r.Program, kernels: r.Kernels}
	if r.Fed {
		return &fedRemote{remote: p}, nil
	}
	return p, nil
}

// Precompile implements device.Precompiler. It does nothing if the device is no Precompiler.
func (d *Device) Precompile(s *schedule.Schedule, k knob.Params) {
	_, _ = d.about(d.o.Timeout, request{Call: callPrecompile, Knobs: k}, s) // Compile reports errors
}

// Evict implements device.Evicter.
func (d *Device) Evict() error {
	if err := d.start(); err != nil {
		return err
	}
	_, err := d.call(d.o.Timeout, request{Call: callEvict}, nil, nil)
	return err
}

// Provoke makes the device fail in the given way. If the failure is not reported within the limit,
// the worker counts as hung.
func (d *Device) Provoke(mishap string, limit time.Duration) error {
	if err := d.start(); err != nil {
		return err
	}
	_, err := d.call(limit, request{Call: callProvoke, Name: mishap}, nil, nil)
	return err
}

// Close ends the worker.
func (d *Device) Close() error {
	d.stop()
	if d.window != nil {
		d.window.close()
		d.window, d.shared = nil, false
	}
	return nil
}

func (d *Device) stop() {
	if d.process != nil {
		d.process.end()
		d.process = nil
	}
}

// A remote is a program in the worker.
type remote struct {
	device     *Device
	generation int
	id         int
	kernels    []device.Kernel
	closed     bool
	perRun     time.Duration // the longest of all samples so far
}

func (p *remote) call(limit time.Duration, q request, out, in []float32) (response, error) {
	switch {
	case p.closed:
		return response{}, errors.New("worker: the program is closed")
	case p.device.process == nil || p.generation != p.device.generation:
		return response{}, fmt.Errorf("worker: %w", device.ErrLost)
	}
	q.Program = p.id
	return p.device.call(limit, q, out, in)
}

func (p *remote) fits(m *schedule.Matrix, n int) error {
	rows := min(n/m.Cols, m.Rows)
	switch {
	case p.closed:
		return errors.New("worker: the program is closed")
	case m.Private():
		return fmt.Errorf("worker: matrix %s is packed or scratch: it cannot be written or read", m.Name)
	case n == 0 || n != rows*m.Cols:
		return fmt.Errorf("worker: matrix %s is %d×%d: %d elements are not whole rows of it", m.Name, m.Rows, m.Cols, n)
	}
	return nil
}

// Write implements device.Program.
func (p *remote) Write(m *schedule.Matrix, src []float32) error {
	if err := p.fits(m, len(src)); err != nil {
		return err
	}
	q := request{Call: callWrite, Matrix: m.ID}
	if !p.device.shared {
		_, err := p.call(p.device.o.Timeout, q, src, nil)
		return err
	}
	through, err := p.device.window.reach(len(src), true)
	if err != nil {
		return err
	}
	device.Copy(through, src)
	return p.move(q, len(src))
}

// Read implements device.Program.
func (p *remote) Read(m *schedule.Matrix, dst []float32) error {
	if err := p.fits(m, len(dst)); err != nil {
		return err
	}
	q := request{Call: callRead, Matrix: m.ID}
	if !p.device.shared {
		_, err := p.call(p.device.o.Timeout, q, nil, dst)
		return err
	}
	through, err := p.device.window.reach(len(dst), true)
	if err != nil {
		return err
	}
	if err := p.move(q, len(dst)); err != nil {
		return err
	}
	device.Copy(dst, through)
	return nil
}

// move has the worker write a matrix of n elements from the window, or read one into it.
func (p *remote) move(q request, n int) error {
	q.Window, q.Size = true, 4*n
	_, err := p.call(p.device.o.Timeout+transfer(n), q, nil, nil)
	return err
}

// Kernels implements device.Program.
func (p *remote) Kernels() []device.Kernel { return p.kernels }

// Prepare implements device.Program.
func (p *remote) Prepare() error {
	_, err := p.call(p.device.o.Timeout, request{Call: callPrepare}, nil, nil)
	return err
}

// Run implements device.Program. Its time limit is the timeout plus ten times what n runs would
// take at the pace of the slowest sample so far.
func (p *remote) Run(n int) (device.Sample, error) {
	limit := p.device.o.Timeout + time.Duration(n)*10*p.perRun
	r, err := p.call(limit, request{Call: callRun, Runs: n}, nil, nil)
	if err == nil {
		p.perRun = max(p.perRun, r.Sample.Wall/time.Duration(max(1, n)))
	}
	return r.Sample, err
}

// Close implements device.Program.
func (p *remote) Close() error {
	if p.closed {
		return nil
	}
	_, err := p.call(p.device.o.Timeout, request{Call: callFree}, nil, nil)
	p.closed = true
	if errors.Is(err, device.ErrLost) { // the program is gone anyway
		return nil
	}
	return err
}
