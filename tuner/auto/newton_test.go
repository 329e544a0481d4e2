package auto_test

import (
	"math"
	"strings"
	"testing"

	"rnnbench/cells"
	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/wisdom"
)

// A converged layer has the times of newton and persistent as graphs on one H200, in µs, and how many
// iterations newton took.
type converged struct {
	cell                          string
	input, hidden, batch, steps   int
	iterations                    int
	newton, persistent, tolerance float64
}

var onH200 = []converged{
	{"gru", 64, 64, 1, 1024, 9, 101.5, 340.7, 0.25},
	{"gru", 256, 256, 1, 4096, 9, 220.2, 1782, 0.25},
	{"lstm", 64, 64, 1, 4096, 9, 141.1, 1194, 0.4},
	{"lstm", 256, 256, 1, 1024, 9, 164.4, 439.4, 0.25},
	{"lstm", 256, 256, 1, 4096, 8, 255, 1714, 0.25},
	{"gru-diag", 1, 8, 1, 256, 3, 19, 29.8, 0.25},
	{"gru-diag", 1, 256, 8, 1024, 2, 42.5, 114.5, 0.25},
	{"gru-diag", 1, 1024, 4, 1024, 2, 77, 126.5, 0.25},
	{"gru-diag", 1, 768, 16, 1024, 2, 211.5, 173.7, 0.25},
	{"gru-diag", 1, 2048, 8, 1024, 2, 273.5, 197.7, 0.25},
	{"gru-diag", 1, 1024, 64, 512, 2, 532.3, 286.2, 0.35},
	{"gru-diag", 1, 4096, 64, 256, 2, 1054, 578.1, 0.35},
}

func (m converged) point(t *testing.T) record.Point {
	t.Helper()
	name := m.cell
	if strings.Contains(name, "-") {
		c, err := cells.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		name = c.Name
	}
	p := point(name, m.hidden, m.batch, m.steps, "fp32")
	p.Input = m.input
	return p
}

// TestNewtonPredicted: with the iterations that its answers took, newton is predicted near the measured times,
// and auto chooses the faster of newton and persistent.
func TestNewtonPredicted(t *testing.T) {
	d := h200(t)
	o := oracle(d)
	o.Verified = true
	for _, m := range onH200 {
		p := m.point(t)
		for name, us := range map[string]float64{"newton": m.newton, "persistent": m.persistent} {
			knobs, within := knob.Params{"graph": 1}, m.tolerance
			if name == "newton" {
				knobs["iterations"], within = m.iterations, 0.25
			}
			l, err := tuner.Adapt(d, impl.Own(), p, grid.Spec{Name: name, Knobs: knobs}, 0)
			if err != nil || l.Reason != "" {
				t.Fatalf("%v: %s declines: %v, %v", p, name, l.Reason, err)
			}
			found, err := d.(device.Predictor).Predict(l.Schedule, l.DeviceKnobs)
			if err != nil {
				t.Fatal(err)
			}
			if r := 1e6 * found.Seconds / us; math.Abs(r-1) > within {
				t.Errorf("%v: %s is predicted to take %.2f times as long as measured", p, name, r)
			}
		}
		s, err := o.Decide(p, grid.Spec{Name: auto.Name, Label: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		if (s.Name == "newton") != (m.newton < m.persistent) {
			t.Errorf("%v: auto chooses %s: %s", p, s.Name, s.Choice.Why)
		}
		if s.Name != "newton" {
			continue
		}
		x := s.Instead
		if !strings.Contains(s.Choice.Why, " iterations, the fewest that such answers took; ") || s.Knobs["iterations"] != 0 || x == nil || x.Name != "persistent" || x.Label != "mine" || x.Choice.Expected.Seconds <= s.Choice.Expected.Seconds {
			t.Errorf("%v: %s, %+v, instead %+v", p, s, s.Choice, x)
		}
	}
}

// TestNewtonUnverified: where nobody verifies answers, auto does not choose newton, whatever is tuned.
func TestNewtonUnverified(t *testing.T) {
	d := h200(t)
	p := onH200[1].point(t)
	book := &wisdom.Book{Entries: []wisdom.Entry{{Device: d.Info().Key, Cache: "hot", Point: p, Impl: "newton", Tried: 5}}}
	for _, verified := range []bool{false, true} {
		o := oracle(d)
		o.Verified, o.Read = verified, func() (*wisdom.Book, error) { return book, nil }
		s, err := o.Decide(p, grid.Spec{Name: auto.Name})
		if err != nil || (s.Name == "newton") != verified || (s.Instead != nil) != verified {
			t.Errorf("verified %v: %s, %+v, %v", verified, s, s.Choice, err)
		}
	}
}

// TestNewtonOnCPU: on a processor the serial kernel is faster, by 1.6 to 40 times in measurements, and auto
// knows. With a single channel of gru-diag, newton is, since its scan runs in lanes.
func TestNewtonOnCPU(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	o := oracle(d)
	o.Verified = true
	for _, m := range []converged{
		{cell: "gru-diag", input: 1, hidden: 4, batch: 1, steps: 2000}, {cell: "gru-diag", input: 16, hidden: 16, batch: 1, steps: 256},
		{cell: "gru-diag", input: 128, hidden: 128, batch: 1, steps: 2000}, {cell: "lstm-diag", input: 1, hidden: 16, batch: 8, steps: 256},
		{cell: "lstm", input: 1, hidden: 1, batch: 1, steps: 2000}, {cell: "lstm", input: 128, hidden: 128, batch: 1, steps: 256}, {cell: "gru", input: 16, hidden: 16, batch: 1, steps: 256},
	} {
		p := m.point(t)
		if s, err := o.Decide(p, grid.Spec{Name: auto.Name}); err != nil || s.Name == "newton" {
			t.Errorf("%v: %s, %v, %v", p, s, s.Choice, err)
		}
	}
}
