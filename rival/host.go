package rival

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"rnnbench/device"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/rnn/torch"
)

// A host is a Rival as a device. It runs each program in a process. Programs may be compiled side by side.
type host Rival

// Info implements device.Device: it is the device beside which the rival runs.
func (h *host) Info() device.Info { return h.o.On }

// Knobs implements device.Device: a rival's knobs are those of the technique.
func (h *host) Knobs(*schedule.Schedule) []knob.Knob { return nil }

// Vocabulary implements device.Device.
func (h *host) Vocabulary() []knob.Knob { return nil }

// Memory implements device.Device. It counts the arrays, here and at the rival. What the rival
// needs besides is unknown.
func (h *host) Memory(s *schedule.Schedule, _ knob.Params) (int64, error) {
	if !(*Rival)(h).Runs() {
		return 0, fmt.Errorf("%s: %w: it runs on %s, not %s", h.o.Name, schedule.ErrDevice, listed(h.devices), h.o.On.Name)
	}
	return 2 * s.Memory(), nil
}

// Compile implements device.Device. The rival gets nothing before the inputs are written.
func (h *host) Compile(s *schedule.Schedule, _ knob.Params) (device.Program, error) {
	f, err := foreign(s)
	if err = cmp.Or(err, h.failed); err != nil {
		return nil, err
	}
	p := &program{host: h, op: f, values: map[*schedule.Matrix][]float32{}}
	if err := json.Unmarshal([]byte(f.Request), &p.work); err != nil {
		return nil, err
	}
	if p.process = h.take(); p.process == nil {
		p.process, _, err = (*Rival)(h).launch()
	}
	return p, err
}

// take returns an idle process that is alive; nil: there is none.
func (h *host) take() *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := len(h.idle); n > 0; n = len(h.idle) {
		p := h.idle[n-1]
		if h.idle = h.idle[:n-1]; p.alive() {
			return p
		}
	}
	return nil
}

// Close implements device.Device.
func (h *host) Close() error { return (*Rival)(h).Close() }

// file is the path of a new file.
func (h *host) file(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files++
	return filepath.Join(h.dir, fmt.Sprintf("%d-%s.npz", h.files, name))
}

// A program is one point, which a process computes.
type program struct {
	host     *host
	process  *process
	op       schedule.Foreign
	work     work
	values   map[*schedule.Matrix][]float32
	prepared bool
	ran      bool
	answered bool          // values are the answer of the last run
	perRun   time.Duration // longest of the samples so far
	runs     pace          // of requests to run
	calls    pace          // of requests to call
	written  bool          // values were written that the next call must hand over
	given    []float32     // inputs that the rival's calls take in turns; nil: those of Prepare or of Write
}

// Write implements device.Program.
func (p *program) Write(m *schedule.Matrix, src []float32) error {
	if len(src) == 0 || len(src)%m.Cols != 0 || len(src) > m.Elements() {
		return fmt.Errorf("rival: matrix %s is %d×%d: %d elements are not whole rows of it", m.Name, m.Rows, m.Cols, len(src))
	}
	if p.values[m] == nil {
		p.values[m] = make([]float32, m.Elements())
	}
	device.Copy(p.values[m], src)
	p.written = p.prepared
	return nil
}

// transfer is how long n elements may take through a file: at 40 MB/s.
func transfer(n int64) time.Duration { return time.Duration(n) * 100 * time.Nanosecond }

// prepareFactor is how many times longer than a run Prepare may take: compilers are slow.
const prepareFactor = 10

// Prepare implements device.Program. It hands over the inputs and keeps no copy.
func (p *program) Prepare() error {
	q := prepare{work: p.work, Data: p.host.file("in")}
	defer os.Remove(q.Data)
	n, err := p.handOver(q.Data)
	if err != nil {
		return err
	}
	clear(p.values)
	a, _, err := p.process.askWithin(p.host.prepare, prepareFactor*p.host.o.Timeout+transfer(n), request{Prepare: &q})
	switch {
	case err != nil:
		return err
	case a.Unsupported != "":
		if a.Spent {
			p.process.close()
		}
		return fmt.Errorf("%s: %w: %s", p.host.o.Name, schedule.ErrLibrary, a.Unsupported)
	case !a.OK:
		return p.process.end(fmt.Errorf("%s sent an invalid answer to prepare and was killed: it has neither ok nor unsupported", p.host.o.Name), device.ErrFault)
	}
	p.prepared, p.ran, p.written, p.given = true, false, false, nil
	return nil
}

// handOver writes the inputs to a file and returns the number of values.
func (p *program) handOver(path string) (n int64, err error) {
	var list []torch.Array
	for _, a := range p.op.In {
		v := p.values[a.All.M]
		if v == nil {
			return 0, fmt.Errorf("rival: input %s was not written", a.Name)
		}
		list = append(list, torch.Array{Name: a.Name, Shape: a.Shape, Values: v})
		n += int64(len(v))
	}
	return n, save(path, list)
}

func save(path string, list []torch.Array) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(torch.WriteNPZ(f, list), f.Close())
}

// Kernels implements device.Program: kernels are unknown.
func (p *program) Kernels() []device.Kernel { return nil }

// late is how much later than twice the stated time an answer may come, and mostLate how often in
// a row. A machine that does much else may delay some answers, but not all.
const (
	late     = 50 * time.Millisecond
	mostLate = 3
)

// A pace is how the answers to requests of one kind come.
type pace struct {
	most  int // runs of a request so far
	lates int // answers to requests of as many runs that came late, in a row
}

// behind returns an error if n runs were stated to take wall, but the answers of as many runs have come
// late several times. Answers of fewer runs do not count.
func (p *pace) behind(n int, wall, took time.Duration) error {
	if n < p.most {
		return nil
	}
	if p.most = n; took <= 2*wall+late {
		p.lates = 0
		return nil
	}
	if p.lates++; p.lates < mostLate {
		return nil
	}
	return fmt.Errorf("it says that %d runs took %v, but the answer came only after %v, and so did the %d before it", n, wall, took.Round(time.Microsecond), mostLate-1)
}

// Run implements device.Program. It waits as long as Rival.patience allows.
func (p *program) Run(n int) (device.Sample, error) {
	if !p.prepared {
		return device.Sample{}, errors.New("rival: it was not prepared")
	}
	if p.written && p.work.Point.Calls > 0 {
		return p.callOnce(n)
	}
	p.answered = false
	clear(p.values)
	q := request{Run: n}
	a, took, err := p.process.askWithin(p.host.ctx, (*Rival)(p.host).patience(time.Duration(min(float64(n)*float64(p.perRun), float64(p.host.o.Timeout)))), q)
	if err != nil {
		return device.Sample{}, err
	}
	if a.Unsupported != "" {
		return device.Sample{}, fmt.Errorf("%s: %w: %s", p.host.o.Name, schedule.ErrLibrary, a.Unsupported)
	}
	wall, own, err := a.times(took)
	if err == nil {
		err = p.runs.behind(n, wall, took)
	}
	if err != nil {
		return device.Sample{}, p.process.end(fmt.Errorf("%s sent an invalid answer to run and was killed: %w", p.host.o.Name, err), device.ErrFault)
	}
	p.ran = true
	p.perRun = max(p.perRun, wall/time.Duration(max(1, n)))
	return device.Sample{Wall: wall, Device: own}, nil
}

// Read implements device.Program. The first Read after a run fetches all matrices.
func (p *program) Read(m *schedule.Matrix, dst []float32) error {
	if !slices.ContainsFunc(p.op.Out, func(a schedule.Array) bool { return a.All.M == m }) || len(dst) != m.Elements() {
		return fmt.Errorf("rival: matrix %s is no answer of %d elements", m.Name, len(dst))
	}
	if !p.ran {
		return errors.New("rival: nothing has run")
	}
	if !p.answered {
		if err := p.fetch(); err != nil {
			return err
		}
		p.answered = true
	}
	device.Copy(dst, p.values[m])
	return nil
}

// fetch reads the answer of the last run.
func (p *program) fetch() error {
	path := p.host.file("out")
	defer os.Remove(path)
	var places []torch.Place
	var n int64
	for _, a := range p.op.Out {
		p.values[a.All.M] = make([]float32, a.All.M.Elements())
		places = append(places, torch.Place{Name: a.Name, Shape: a.Shape, Values: p.values[a.All.M]})
		n += int64(a.All.M.Elements())
	}
	a, _, err := p.process.askWithin(p.host.ctx, p.host.o.Timeout+transfer(n), request{Read: path})
	if err != nil {
		return err
	}
	wrong := func(why error) error {
		return p.process.end(fmt.Errorf("%s gave an invalid answer and was killed: %w", p.host.o.Name, why), device.ErrFault)
	}
	if !a.OK {
		return wrong(fmt.Errorf("its answer to read has no ok: %s", reason(a)))
	}
	info, err := os.Lstat(path)
	if err != nil {
		return wrong(errors.New("it wrote no file"))
	}
	if most := 8*n + int64(len(places)+64)<<12; !info.Mode().IsRegular() || info.Size() > most {
		return wrong(fmt.Errorf("its file has %d bytes, more than the %d that the answer may take, or is no file", info.Size(), most))
	}
	f, err := os.Open(path)
	if err != nil {
		return wrong(err)
	}
	defer f.Close()
	if err := torch.ReadNPZ(f, info.Size(), places); err != nil {
		return wrong(err)
	}
	return nil
}

// Close implements device.Program. The next program may use the process.
func (p *program) Close() error {
	if p.process != nil && p.process.broken == nil {
		p.host.mu.Lock()
		p.host.idle = append(p.host.idle, p.process)
		p.host.mu.Unlock()
	}
	p.process = nil
	clear(p.values)
	return nil
}
