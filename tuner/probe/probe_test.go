package probe

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/model"
	"rnnbench/record"
	"rnnbench/rnn/cell"
)

// prober is a device whose memories are known.
type prober struct {
	device.Device
	workers  int
	memories []device.Memory
	err      error
}

func (p *prober) Info() device.Info {
	return device.Info{Name: "cpu", Model: "NVIDIA H200 of a test", Workers: p.workers, Libraries: map[string]string{"simd": "avx2"}}
}

func (p *prober) Hierarchy() (device.Hierarchy, error) {
	return device.Hierarchy{Memories: p.memories, Product: 1e10, Pointwise: 1e8, Exchange: 1e9, Barrier: 1e-7}, p.err
}

// TestMachine converts a hierarchy to the model's terms: the first shared level holds the workers, and
// only the last level has all its bytes for weights.
func TestMachine(t *testing.T) {
	p := &prober{workers: 2, memories: []device.Memory{
		{Name: "L2", Bytes: 1 << 20, PerCore: 2e10}, {Name: "L3", Bytes: 8 << 20, PerCore: 1e10, Shared: true}, {Name: "DRAM", Bytes: 8 << 30, PerCore: 5e9, Shared: true},
	}}
	m, err := Machine(p)
	if err != nil {
		t.Fatal(err)
	}
	if m.FLOPS != 2e10 || m.Pointwise != 2e8 || m.Barrier() != 1e-7 || m.Parts() != 2 || m.Private() != 1 || len(m.Levels) != 3 {
		t.Errorf("%+v", m)
	}
	for i, want := range []float64{0.75 * (1 << 20), 4 << 20, 8 << 30} {
		if m.Levels[i].M != want {
			t.Errorf("%s has %g bytes for weights, want %g", m.Levels[i].Name, m.Levels[i].M, want)
		}
	}
	if l := m.Levels[1]; l.P != 2 || l.B != 2e10 || l.X != 2e9 {
		t.Errorf("%+v", l)
	}
	p.workers = 1 // L3 is then its own, but keeps its name
	if m, err = Machine(p); err != nil {
		t.Fatal(err)
	}
	if room, in, _, err := m.Room(cell.RNNTanh, 4); err != nil || room != 4<<20 || in != "L3" {
		t.Errorf("one worker has room for %g bytes in %s, %v", room, in, err)
	}
	p.workers = 2
	p.memories = nil // it cannot measure, but the program knows its model
	if m, err = Machine(p); err != nil || m == nil || !strings.EqualFold(m.Name, "h200") {
		t.Errorf("%+v, %v", m, err)
	}
	p.err = errors.New("broken")
	if _, err = Machine(p); err == nil {
		t.Error("a device that fails has a machine")
	}
}

func TestMoved(t *testing.T) {
	at := func(barrier float64) *model.Machine {
		return &model.Machine{Levels: []model.Level{{Name: "L3", P: 2, C: barrier}}}
	}
	for _, c := range []struct {
		was, is float64
		moved   bool
	}{{1e-7, 1.4e-7, false}, {1e-7, 1.6e-7, true}, {1.6e-7, 1e-7, true}, {0, 1e-7, false}} {
		if got := Moved(at(c.was), at(c.is)); (got != nil) != c.moved {
			t.Errorf("from %g to %g s: %v", c.was, c.is, got)
		}
	}
}

// program takes a millisecond a run, and 1.5 ms in every tenth sample.
type program struct {
	device.Program
	samples int
	fail    bool
}

func (p *program) Run(n int) (device.Sample, error) {
	if p.fail {
		return device.Sample{}, errors.New("broken")
	}
	wall := time.Duration(n) * time.Millisecond
	if p.samples++; p.samples%10 == 0 {
		wall += wall / 2
	}
	return device.Sample{Wall: wall}, nil
}

func TestListen(t *testing.T) {
	n, err := Listen(t.Context(), &program{})
	if err != nil || n.Samples != 40 || math.Abs(n.Sample-0.032) > 1e-9 || math.Abs(n.Range-0.5) > 1e-9 || n.Quartiles != 0 {
		t.Errorf("%+v, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Listen(ctx, &program{}); err == nil {
		t.Error("it went on after an interruption")
	}
	if _, err := Listen(t.Context(), &program{fail: true}); err == nil {
		t.Error("a program that fails has noise")
	}
}

// TestAdvice says what to do about each kind of noise.
func TestAdvice(t *testing.T) {
	if list := (Noise{}).Advice(); len(list) != 0 {
		t.Errorf("none is needed: %v", list)
	}
	list := Noise{HalfWidth: 0.3, Warnings: []string{record.WarnBimodal, record.WarnDrift}}.Advice()
	if len(list) != 3 || !strings.Contains(list[0].Remedy, "--target-ci 31%") || !strings.Contains(list[1].What, "slow group") || !strings.Contains(list[2].What, "drift") {
		t.Errorf("%v", list)
	}
}
