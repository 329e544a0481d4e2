package cuda_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/emulator"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// emulated returns a device on the emulator, and its driver.
func emulated(t *testing.T) (*cuda.Device, *emulator.Driver) {
	compiler, driver := emulation(t, 8)
	d := cuda.New(driver, compiler, t.TempDir())
	t.Cleanup(func() { d.Close() })
	return d, driver
}

// sample returns one of every so many cases: with -short a quarter as many. make emulate runs all.
func sample[T any](cases []T, every int) []T {
	switch {
	case os.Getenv("RNNBENCH_EMULATE") != "":
		return cases
	case testing.Short():
		every *= 4
	}
	var some []T
	for i := 0; i < len(cases); i += every {
		some = append(some, cases[i])
	}
	return some
}

// emulation returns the compiler and the driver of an emulated GPU with sms multiprocessors.
func emulation(t *testing.T, sms int) (driver.Compiler, *emulator.Driver) {
	compiler, err := emulator.NewCompiler()
	if err != nil {
		t.Skip(err)
	}
	driver, err := emulator.New(sms, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { driver.Close() })
	return remembering{compiler}, driver
}

// remembering is a compiler that compiles each kernel once for all tests.
type remembering struct{ driver.Compiler }

var remembered sync.Map // images by the kernel's name and text

func (c remembering) Compile(name, source string) ([]byte, error) {
	key := [2]string{name, source}
	if image, ok := remembered.Load(key); ok {
		return slices.Clone(image.([]byte)), nil
	}
	image, err := c.Compiler.Compile(name, source)
	if err == nil {
		remembered.Store(key, slices.Clone(image))
	}
	return image, err
}

// TestEmulated runs the suite of devices on the emulator. It runs only under make emulate, since
// compiling kernels one by one takes minutes.
func TestEmulated(t *testing.T) {
	if os.Getenv("RNNBENCH_EMULATE") == "" {
		t.Skip("make emulate runs it")
	}
	d, _ := emulated(t)
	devicetest.Run(t, d)
}

// TestLimits checks the launches that measure a GPU, and that Inspect reports its state.
func TestLimits(t *testing.T) {
	d, driver := emulated(t)
	driver.Dry = true
	l, err := d.Limits()
	if err != nil {
		t.Fatal(err)
	}
	if l.FLOPS <= 0 || l.Copy <= 0 || len(l.More) != 9 {
		t.Errorf("limits are %+v", l)
	}
	for _, name := range []string{"copies to the host", "copies from the host"} {
		if !slices.ContainsFunc(l.More, func(r device.Rate) bool { return r.Name == name && r.Value > 0 && r.Unit == "B/s" }) {
			t.Errorf("no rate of %s: %+v", name, l.More)
		}
	}
	if s, err := d.LaunchTime(); err != nil || s <= 0 {
		t.Errorf("a launch takes %v s, %v", s, err)
	}
	if f, err := d.Inspect(); err != nil || len(f) == 0 {
		t.Errorf("the state is %v, %v", f, err)
	}
	if err := errors.Join(d.Evict(), d.Evict()); err != nil {
		t.Error(err)
	}
}

// poor is a GPU without a library for products.
type poor struct{ *emulator.Driver }

func (d poor) Properties() driver.Properties {
	p := d.Driver.Properties()
	p.NoProducts, p.NoNetworks = "there is no library", "there is no library of networks"
	return p
}

// TestDeclines checks that what a GPU cannot do is declined with the reason.
func TestDeclines(t *testing.T) {
	compiler, driver := emulation(t, 2)
	d := cuda.New(poor{driver}, compiler, "")
	defer d.Close()
	driver.Dry = true
	if l, err := d.Limits(); err != nil || len(l.More) != 5 {
		t.Errorf("limits without products are %+v, %v", l, err)
	}
	b := schedule.NewBuilder(1)
	b.Do(0, schedule.Gemm{A: b.Matrix("a", 2, 3).All(), B: b.Matrix("b", 3, 4).All(), C: b.Matrix("c", 2, 4).All()})
	declines(t, d, b, "there is no library")
	b = schedule.NewBuilder(1)
	b.Do(0, network(b, 1))
	declines(t, d, b, "there is no library of networks")
	b = schedule.NewBuilder(1)
	one, two := network(b, 1), network(b, 2)
	two.W[1], two.R[1], two.BX[1], two.BR[1] = one.W[0], one.R[0], one.BX[0], one.BR[0]
	b.Do(0, one)
	b.Do(0, two)
	declines(t, cuda.New(driver, compiler, ""), b, "two networks")
	b = schedule.NewBuilder(1)
	const hidden = 700
	op := schedule.Persistent{Sequence: schedule.Sequence{
		Cell: cell.RNNTanh, Steps: 2, X: b.Matrix("x", 2, hidden).All(), BX: b.Matrix("bx", 1, hidden).All(), BR: b.Matrix("br", 1, hidden).All(),
		State: []schedule.View{b.Matrix("h", 3, hidden).All()},
	}, R: []schedule.View{b.Packed("r", hidden, hidden).All()}}
	b.Do(0, op)
	declines(t, d, b, "KiB of shared memory, and there are 227")
}

func declines(t *testing.T, d *cuda.Device, b *schedule.Builder, why string) {
	t.Helper()
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Compile(s, nil); !errors.Is(err, schedule.ErrUnsupported) || !strings.Contains(err.Error(), why) {
		t.Errorf("it is not declined for %q: %v", why, err)
	}
}

// network is a network of so many layers of two units over new matrices.
func network(b *schedule.Builder, layers int) schedule.Vendor {
	all := func(rows, cols int) schedule.View { return b.Matrix("m", rows, cols).All() }
	op := schedule.Vendor{
		Stack: schedule.Stack{Cell: cell.RNNTanh, Steps: 3, X: all(6, 2), Y: all(6, 2), First: []schedule.View{all(2*layers, 2)}},
		Last:  []schedule.View{all(2*layers, 2)},
	}
	for range layers {
		op.W, op.R = append(op.W, all(2, 2)), append(op.R, all(2, 2))
		op.BX, op.BR = append(op.BX, all(1, 2)), append(op.BR, all(1, 2))
	}
	return op
}

// A counting compiler counts the kernels that it has compiled and those that it is compiling.
type counting struct {
	driver.Compiler
	mu       sync.Mutex
	all, now int
}

func (c *counting) Compile(name, source string) ([]byte, error) {
	c.mu.Lock()
	c.all++
	c.now++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.now--
		c.mu.Unlock()
	}()
	return c.Compiler.Compile(name, source)
}

// TestCache: a cached kernel is not compiled again, unless its file was damaged.
func TestCache(t *testing.T) {
	compiler, driver := emulation(t, 8)
	count, dir := &counting{Compiler: compiler}, t.TempDir()
	b := schedule.NewBuilder(1)
	m := b.Matrix("m", 3, 5)
	b.Do(0, schedule.Map{Op: cell.OneMinus, Out: m.All(), A: m.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	damage := func(data []byte) []byte { return data }
	for i, c := range []struct {
		damage func(data []byte) []byte
		want   int // compiled so far
	}{
		{damage, 1}, {damage, 1},
		{func(data []byte) []byte { return data[:len(data)/2] }, 2},
		{func(data []byte) []byte { data[len(data)-1]++; return data }, 3},
		{func([]byte) []byte { return nil }, 4},
		{damage, 4},
	} {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) != min(i, 1) {
			t.Fatalf("the cache has %q, %v", files, err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err = errors.Join(err, os.WriteFile(f, c.damage(data), 0o666)); err != nil {
				t.Fatal(err)
			}
		}
		p, err := cuda.New(driver, count, dir).Compile(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
		if count.all != c.want {
			t.Errorf("round %d: compiled %d times, want %d", i, count.all, c.want)
		}
	}
}

// TestPrecompile: kernels of several programs are compiled before the first program is: each once,
// and all before the first is ready.
func TestPrecompile(t *testing.T) {
	compiler, driver := emulation(t, 8)
	count := &counting{Compiler: compiler}
	d := cuda.New(driver, count, "")
	defer d.Close()
	var all []*schedule.Schedule
	for _, op := range []cell.Op{cell.OneMinus, cell.Zero, cell.OneMinus} {
		b := schedule.NewBuilder(1)
		m := b.Matrix("m", 3, 5)
		b.Do(0, schedule.Map{Op: op, Out: m.All(), A: m.All()})
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
		d.Precompile(s, nil)
	}
	for i, s := range all {
		p, err := d.Compile(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Run(1); err != nil {
			t.Error(err)
		}
		if count.all != 2 || count.now != 0 {
			t.Errorf("when program %d is ready, %d kernels were compiled and %d are being compiled; want 2 and 0", i, count.all, count.now)
		}
	}
}
