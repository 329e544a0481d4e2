package cuda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/lower"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/schedule"
)

// A meter measures the GPU's limits, on stream 0.
type meter struct {
	device     *Device
	begin, end driver.Event
	memory     []driver.Pointer
	sequences  []driver.Sequence
}

// Limits implements device.Meter. Each limit is the best of several trials, since disturbances only
// slow them.
func (d *Device) Limits() (device.Limits, error) {
	m := meter{device: d}
	l, err := m.measure()
	return l, errors.Join(err, m.free())
}

// ready makes what every measurement needs; free releases it.
func (m *meter) ready() error {
	d := m.device.driver
	var err [3]error
	err[0] = d.Streams(1)
	m.begin, err[1] = d.NewEvent(true)
	m.end, err[2] = d.NewEvent(true)
	return errors.Join(err[:]...)
}

func (m *meter) free() error {
	d := m.device.driver
	err := errors.Join(d.FreeEvent(m.begin), d.FreeEvent(m.end))
	for _, p := range m.memory {
		err = errors.Join(err, d.Free(p))
	}
	for _, s := range m.sequences {
		err = errors.Join(err, d.FreeSequence(s))
	}
	return err
}

func (m *meter) measure() (device.Limits, error) {
	var l device.Limits
	if err := m.ready(); err != nil {
		return l, err
	}
	for _, f := range []func(*device.Limits) error{m.muladds, m.copy, m.hostCopies, m.products, m.launching, m.barriers} {
		if err := f(&l); err != nil {
			return l, fmt.Errorf("cuda: limits: %w", err)
		}
	}
	return l, nil
}

// alloc returns zeroed memory, which free releases.
func (m *meter) alloc(bytes int64) (driver.Pointer, error) {
	p, err := m.device.driver.Alloc(bytes)
	if err != nil {
		return 0, err
	}
	m.memory = append(m.memory, p)
	return p, m.device.driver.Clear(driver.Extent{At: p, Bytes: bytes})
}

// times returns the times of f's work in some trials, in seconds, the shortest first.
func (m *meter) times(f func() error) ([]float64, error) {
	const trials = 8
	d := m.device.driver
	times := make([]float64, trials)
	for i := range times {
		if err := errors.Join(d.Record(m.begin, 0), f(), d.Record(m.end, 0), d.Await(m.end)); err != nil {
			return nil, err
		}
		var err error
		if times[i], err = d.Elapsed(m.begin, m.end); err != nil {
			return nil, err
		}
	}
	slices.Sort(times)
	return times, nil
}

// best returns the shortest time of f's work, in seconds.
func (m *meter) best(f func() error) (float64, error) {
	times, err := m.times(f)
	if err != nil {
		return 0, err
	}
	return times[0], nil
}

// calls prepares a call, and returns a function that makes it so many times.
func (m *meter) calls(c driver.Call, times int) (func() error, error) {
	s, err := m.device.driver.Sequence(slices.Repeat([]driver.Call{c}, times))
	m.sequences = append(m.sequences, s)
	return func() error {
		_, err := m.device.driver.Issue(s)
		return err
	}, err
}

// launch prepares a kernel, and returns a function that launches it.
func (m *meter) launch(s codegen.Source, grid, block int, cooperative bool, args ...uint64) (func() error, error) {
	return m.launches(1, s, grid, block, cooperative, args...)
}

// launches is launch for so many times.
func (m *meter) launches(times int, s codegen.Source, grid, block int, cooperative bool, args ...uint64) (func() error, error) {
	st := launch.New(&s, [3]int{grid, 1, 1}, [3]int{block, 1, 1}, args...)
	if st.Launch.Cooperative = cooperative; cooperative {
		st.Launch.Shared = 16
	}
	if err := m.device.load([]launch.Command{st}); err != nil {
		return nil, err
	}
	return m.calls(driver.Call{Launch: st.Launch}, times)
}

func (m *meter) muladds(l *device.Limits) error {
	const count = 4096
	run, flops, err := m.work(count)
	if err != nil {
		return err
	}
	s, err := m.best(run)
	l.FLOPS = flops / s
	return err
}

// work returns a function that launches multiply-adds on every multiprocessor, 32·count operations
// per thread, and the number of all operations.
func (m *meter) work(count int) (run func() error, flops float64, err error) {
	const threads = 512
	blocks := 4 * m.device.properties.SMs
	out, err := m.alloc(4)
	if err != nil {
		return nil, 0, err
	}
	run, err = m.launch(file("muladds"), blocks, threads, false, uint64(out), uint64(count))
	return run, 32 * float64(count) * threads * float64(blocks), err
}

// A wattmeter reads the energy counter of the GPU behind a driver.
type wattmeter struct{ driver driver.Driver }

// Power implements device.PowerMeter.
func (w wattmeter) Power() (device.Power, error) { return w.driver.Power() }

// Inspect implements device.Inspector. It looks while the GPU works, since clocks fall when idle.
func (d *Device) Inspect() ([]device.Finding, error) {
	m := meter{device: d}
	findings, err := m.underLoad(d.driver.Survey)
	return findings, errors.Join(err, m.free())
}

// underLoad calls f during about a quarter of a second of work.
func (m *meter) underLoad(f func() []device.Finding) ([]device.Finding, error) {
	if err := m.ready(); err != nil {
		return nil, err
	}
	run, _, err := m.work(1 << 21)
	if err != nil {
		return nil, err
	}
	d := m.device.driver
	if err := errors.Join(run(), d.Record(m.end, 0)); err != nil {
		return nil, err
	}
	time.Sleep(150 * time.Millisecond)
	findings := f()
	return findings, d.Await(m.end)
}

func (m *meter) copy(l *device.Limits) error {
	bytes := min(16*int64(m.device.properties.L2), m.device.properties.Memory/8) &^ 15
	from, err := m.alloc(bytes)
	if err != nil {
		return err
	}
	to, err := m.alloc(bytes)
	if err != nil {
		return err
	}
	n := int(bytes / 16)
	run, err := m.launch(file("copies"), ints.CeilDiv(n, 256), 256, false, uint64(from), uint64(to), uint64(n))
	if err != nil {
		return err
	}
	s, err := m.best(run)
	l.Copy = 2 * float64(bytes) / s
	return err
}

// hostCopies reports how fast the GPU copies to memory of the host that it reaches, and from it.
func (m *meter) hostCopies(l *device.Limits) (err error) {
	const bytes = 64 << 20
	d := m.device.driver
	there, err := m.alloc(bytes)
	if err != nil {
		return err
	}
	here, err := d.HostMemory(bytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.FreeHostMemory(here)) }()
	out, err := m.best(func() error { return d.CopyOut(here, there) })
	if err != nil {
		return err
	}
	in, err := m.best(func() error { return d.CopyIn(there, here, 0) })
	l.More = append(l.More, device.Rate{Name: "copies to the host", Value: bytes / out, Unit: "B/s"}, device.Rate{Name: "copies from the host", Value: bytes / in, Unit: "B/s"})
	return err
}

// edge is the size of the square products that are timed.
const edge = 8192

func (m *meter) products(l *device.Limits) error {
	if m.device.properties.NoProducts != "" {
		return nil
	}
	n := edge
	if m.device.properties.Memory < 64<<30 {
		n /= 4
	}
	bytes := 4 * int64(n) * int64(n)
	var p [3]driver.Pointer
	for i := range p {
		var err error
		if p[i], err = m.alloc(bytes); err != nil {
			return err
		}
	}
	for _, precision := range []schedule.Precision{schedule.FP32, schedule.TF32, schedule.BF16, schedule.FP16} {
		e := driver.Single
		switch precision {
		case schedule.BF16:
			e = driver.Brain
		case schedule.FP16:
			e = driver.Half
		}
		if precision != schedule.TF32 { // random data, since zeros are faster; TF32 uses those of fp32
			if err := m.fill(p[:2], n, e); err != nil {
				return err
			}
		}
		q := &driver.Product{M: n, N: n, K: n, A: p[0], B: p[1], C: p[2], LdA: n, LdB: n, LdC: n, Operands: e, TF32: precision == schedule.TF32}
		run, err := m.calls(driver.Call{Product: q}, 1)
		if err != nil {
			return err
		}
		s, err := m.best(run)
		if err != nil {
			return err
		}
		l.More = append(l.More, device.Rate{Name: precision.String() + " products", Value: 2 * float64(n) * float64(n) * float64(n) / s, Unit: "FLOP/s"})
	}
	return nil
}

// fill writes random matrices: the same 61 rows again and again.
func (m *meter) fill(to []driver.Pointer, n int, e driver.Element) error {
	rng := rand.New(rand.NewPCG(1, 2))
	row := make([]float32, 61*n)
	for i := range row {
		row[i] = 2*rng.Float32() - 1
	}
	for _, p := range to {
		for i := 0; i < n; i += 61 {
			rows := min(61, n-i)
			if err := m.device.driver.Upload(p+driver.Pointer(i*n*e.Bytes()), driver.Encode(row[:rows*n], e)); err != nil {
				return err
			}
		}
	}
	return nil
}

// launching reports the cost of launches, one by one and in a graph.
func (m *meter) launching(l *device.Limits) error {
	t, err := m.dispatch()
	l.More = append(l.More, device.Rate{Name: "launches", Value: t.Host, Unit: "s"}, device.Rate{Name: "in a graph", Value: t.Graph, Unit: "s"})
	return err
}

// LaunchTime implements device.LaunchMeter. It is the median of several trials, since it is to show what disturbs
// launches.
func (d *Device) LaunchTime() (float64, error) {
	m := meter{device: d}
	s, err := m.launchTime()
	return s, errors.Join(err, m.free())
}

func (m *meter) launchTime() (float64, error) {
	if err := m.ready(); err != nil {
		return 0, err
	}
	many, err := m.empties()
	if err != nil {
		return 0, err
	}
	times, err := m.times(many)
	if err != nil {
		return 0, err
	}
	return times[len(times)/2] / emptyKernels, nil
}

// emptyKernels is how many empty kernels are launched to time one.
const emptyKernels = 1000

// empties returns a function that launches empty kernels one by one.
func (m *meter) empties() (func() error, error) {
	return m.launches(emptyKernels, file("empty"), 1, 32, false, 0)
}

// dispatch times empty kernels, launched one by one and in a graph.
func (m *meter) dispatch() (lower.Dispatch, error) {
	const count = emptyKernels
	many, err := m.empties()
	if err != nil {
		return lower.Dispatch{}, err
	}
	host, err := m.best(many)
	if err != nil {
		return lower.Dispatch{}, err
	}
	d := m.device.driver
	if many, err = m.launches(count, file("empty"), m.device.properties.SMs, 128, false, 0); err != nil {
		return lower.Dispatch{}, err
	}
	if err := d.BeginCapture(); err != nil {
		return lower.Dispatch{}, err
	}
	failed := many()
	g, err := d.EndCapture()
	if err := errors.Join(failed, err); err != nil {
		return lower.Dispatch{}, err
	}
	graph, err := m.best(func() error { return d.Replay(g) })
	if err := errors.Join(err, d.FreeGraph(g)); err != nil {
		return lower.Dispatch{}, err
	}
	return lower.Dispatch{Host: host / count, Graph: graph / count}, nil
}

func (m *meter) barriers(l *device.Limits) error {
	const count = 2000
	words, err := m.alloc(2 * launch.Alignment)
	if err != nil {
		return err
	}
	s := file("barriers")
	s.Text = kernels.GridBarrier() + s.Text
	var times []float64
	for _, n := range []uint64{count, 0} {
		run, err := m.launch(s, m.device.properties.SMs, 256, true, n, uint64(words), uint64(words)+launch.Alignment)
		if err != nil {
			return err
		}
		t, err := m.best(run)
		if err != nil {
			return err
		}
		times = append(times, t)
	}
	each := (times[0] - slices.Min(times)) / count
	l.More = append(l.More, device.Rate{Name: "barrier", Value: each, Unit: "s"})
	return nil
}
