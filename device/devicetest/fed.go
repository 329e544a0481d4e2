package devicetest

import (
	"errors"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Fed returns d with programs that implement device.Fed. Each run is made in a goroutine of its
// own. Calls that the interface forbids during a run return errors.
func Fed(d device.Device) device.Device { return fedDevice{d} }

type fedDevice struct{ device.Device }

func (d fedDevice) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	if err != nil {
		return nil, err
	}
	return &fedProgram{Program: p, schedule: s}, nil
}

type fedProgram struct {
	device.Program
	schedule *schedule.Schedule
	waiting  []device.Filled
	runs     []chan error  // under way, the oldest first; each delivers the run's error
	latest   chan struct{} // closed when the latest run has ended
	closed   bool
}

var errRunning = errors.New("devicetest: a run is under way")

func (p *fedProgram) Feed(values ...device.Filled) error {
	if p.closed {
		return errors.New("devicetest: the program is closed")
	}
	for _, v := range values {
		m := p.schedule.Matrices[v.Matrix.ID]
		if rows := len(v.Values) / m.Cols; m.Private() || len(v.Values) == 0 || len(v.Values) != rows*m.Cols || rows > m.Rows {
			return errors.New("devicetest: the values do not fill whole rows")
		}
	}
	for _, v := range values {
		p.waiting = append(p.waiting, device.Filled{Matrix: v.Matrix, Values: slices.Clone(v.Values)})
	}
	return nil
}

// write writes the values to their matrices.
func (p *fedProgram) write(values []device.Filled) error {
	for _, v := range values {
		if err := p.Program.Write(v.Matrix, v.Values); err != nil {
			return err
		}
	}
	return nil
}

func (p *fedProgram) Start() error {
	if len(p.runs) == device.Ahead {
		return errRunning
	}
	if p.closed {
		return errors.New("devicetest: the program is closed")
	}
	values, before := p.waiting, p.latest
	result, ended := make(chan error, 1), make(chan struct{})
	p.waiting, p.latest, p.runs = nil, ended, append(p.runs, result)
	go func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		err := p.write(values)
		if err == nil {
			_, err = p.Program.Run(1)
		}
		result <- err
	}()
	return nil
}

func (p *fedProgram) Wait() error {
	if len(p.runs) == 0 {
		return errors.New("devicetest: no run was started")
	}
	result := p.runs[0]
	p.runs = p.runs[1:]
	return <-result
}

func (p *fedProgram) Write(m *schedule.Matrix, src []float32) error {
	if len(p.runs) > 0 {
		return errRunning
	}
	var now, later []device.Filled
	for _, v := range p.waiting {
		if v.Matrix.ID == m.ID {
			now = append(now, v)
		} else {
			later = append(later, v)
		}
	}
	p.waiting = later
	if err := p.write(now); err != nil {
		return err
	}
	return p.Program.Write(m, src)
}

func (p *fedProgram) Read(m *schedule.Matrix, dst []float32) error {
	if len(p.runs) > 0 {
		return errRunning
	}
	return p.Program.Read(m, dst)
}

func (p *fedProgram) Prepare() error {
	if len(p.runs) > 0 {
		return errRunning
	}
	return p.Program.Prepare()
}

func (p *fedProgram) Run(n int) (device.Sample, error) {
	if len(p.runs) > 0 {
		return device.Sample{}, errRunning
	}
	return p.Program.Run(n)
}

func (p *fedProgram) Close() error {
	for len(p.runs) > 0 {
		_ = p.Wait() // nobody waits for its error
	}
	p.closed = true
	return p.Program.Close()
}

// Feeding checks a device whose programs implement device.Fed against that interface, with each of
// the settings.
func Feeding(t *testing.T, d device.Device, settings ...knob.Params) {
	for _, precision := range precisions(d) {
		for _, k := range settings {
			feeding(t, d, precision, k)
		}
	}
}

// A fedSum is a program that, in each run, adds x to sum and multiplies x by w. Both have 3 rows.
type fedSum struct {
	device.Fed
	device.Program
	t         *testing.T
	x, sum, w *schedule.Matrix
	want      []float32
}

// newFedSum returns nil if the device does not support the precision for this schedule.
func newFedSum(t *testing.T, d device.Device, precision schedule.Precision, k knob.Params) *fedSum {
	t.Helper()
	b := schedule.NewBuilder(2)
	b.SetPrecision(precision)
	f := &fedSum{t: t, x: b.Matrix("x", 3, 16), sum: b.Matrix("sum", 3, 16), w: b.Matrix("w", 16, 8), want: make([]float32, 48)}
	b.Do(0, schedule.Map{Op: cell.Add, Out: f.sum.All(), A: f.sum.All(), B: f.x.All()})
	b.Do(1, schedule.Gemm{A: f.x.All(), B: f.w.All(), C: b.Matrix("y", 3, 8).All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	f.Program, err = d.Compile(s, k)
	if precision != schedule.FP32 && errors.Is(err, schedule.ErrUnsupported) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Fed = f.Program.(device.Fed)
	return f
}

// rows returns values for the first n rows of x, all equal to value.
func (f *fedSum) rows(n int, value float32) device.Filled {
	return device.Filled{Matrix: f.x, Values: slices.Repeat([]float32{value}, 16*n)}
}

// check compares the sum after added[i] was added to row i.
func (f *fedSum) check(what string, added ...float32) {
	f.t.Helper()
	for i := range f.want {
		f.want[i] += added[i/16]
	}
	got := make([]float32, len(f.want))
	if err := f.Read(f.sum, got); err != nil || !slices.Equal(got, f.want) {
		f.t.Errorf("%s: the sum is %v, want %v: %v", what, got, f.want, err)
	}
}

func (f *fedSum) must(errs ...error) {
	f.t.Helper()
	if err := errors.Join(errs...); err != nil {
		f.t.Fatal(err)
	}
}

func feeding(t *testing.T, d device.Device, precision schedule.Precision, k knob.Params) {
	f := newFedSum(t, d, precision, k)
	if f == nil {
		return
	}
	f.must(f.Prepare(), f.Feed(f.rows(3, 1)))
	f.check("before a run", 0, 0, 0)
	next := f.rows(3, 2)
	f.must(f.Start(), f.Feed(next))
	clear(next.Values)
	f.must(f.Wait())
	f.check("values fed before the run", 1, 1, 1)
	x := make([]float32, 48)
	f.must(f.Read(f.x, x))
	if x[0] != 1 || x[47] != 1 {
		t.Errorf("a matrix has the values of the next run: %v", x)
	}
	f.must(f.Start(), f.Wait())
	f.check("values fed during a run", 2, 2, 2)
	f.must(f.Start(), f.Wait())
	f.check("nothing fed", 2, 2, 2)
	f.must(f.Start(), f.Feed(f.rows(3, 3)), f.Feed(f.rows(2, 4)), f.Feed(f.rows(1, 5)), f.Wait(), f.Start(), f.Wait())
	f.check("rows fed one after another during a run", 2+5, 2+4, 2+3)
	f.must(f.Feed(f.rows(3, 6)), f.Write(f.x, f.rows(2, 7).Values), f.Start(), f.Wait())
	f.check("rows written after the feed", 7, 7, 6)
	f.must(f.Write(f.x, f.rows(3, 8).Values), f.Feed(f.rows(2, 9)), f.Start(), f.Wait())
	f.check("rows fed after a write", 9, 9, 8)
	f.must(f.Feed(f.rows(3, 1), device.Filled{Matrix: f.sum, Values: make([]float32, 16)}), f.Start(), f.Wait())
	clear(f.want[:16])
	f.check("two matrices", 1, 1, 1)
	f.must(f.Feed(f.rows(3, 2)))
	if _, err := f.Run(2); err != nil {
		t.Error(err)
	}
	f.check("Run ignores fed values", 2, 2, 2)
	f.must(f.Start(), f.Wait())
	f.check("the next Start uses them", 2, 2, 2)
	f.must(f.Feed(f.rows(3, 1)), f.Start(), f.Feed(f.rows(3, 2)), f.Wait(), f.Start(), f.Feed(f.rows(3, 3)), f.Wait(), f.Start(), f.Wait())
	f.check("three runs, each fed during the one before", 1+2+3, 1+2+3, 1+2+3)
	f.must(f.Feed(f.rows(3, 1)), f.Start(), f.Feed(f.rows(3, 2)), f.Start(), f.Feed(f.rows(2, 3)), f.Wait(), f.Start(), f.Wait(), f.Wait())
	f.check("three runs, each begun before the end of the one before", 1+2+3, 1+2+3, 1+2+2)
	misfed(t, f)
	f.must(f.Start(), f.Start(), f.Feed(f.rows(3, 3)), f.Close())
	if f.Start() == nil || f.Wait() == nil || f.Feed(f.rows(1, 1)) == nil {
		t.Error("a closed program accepts calls")
	}
}

// misfed checks that f returns errors for invalid calls.
func misfed(t *testing.T, f *fedSum) {
	if f.Wait() == nil {
		t.Error("Wait without a run returns no error")
	}
	for _, n := range []int{0, 7, 64} {
		if f.Feed(device.Filled{Matrix: f.x, Values: make([]float32, n)}) == nil {
			t.Errorf("%d values are accepted as rows of 16", n)
		}
	}
	for range device.Ahead {
		f.must(f.Start())
	}
	if f.Start() == nil {
		t.Errorf("Start accepts a run while %d are under way", device.Ahead)
	}
	for range device.Ahead {
		f.must(f.Wait())
	}
}
