package cuda_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// holdAll runs a schedule twice and holds all its matrices to double precision.
func holdAll(t *testing.T, d device.Device, s *schedule.Schedule) {
	t.Helper()
	k := knob.Params{}
	for _, o := range d.Knobs(s) {
		if o.Name == "split" {
			k["split"] = 3
		}
	}
	p, err := d.Compile(s, k)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rng := rand.New(rand.NewPCG(3, 4))
	want := make([][]float64, len(s.Matrices))
	for i, m := range s.Matrices {
		if m.Private() {
			want[i] = make([]float64, m.Elements())
			continue
		}
		values := make([]float32, m.Elements())
		want[i] = make([]float64, len(values))
		for j := range values {
			switch values[j] = 2*rng.Float32() - 1; m.Name {
			case "large":
				values[j] *= 1e6
			case "class":
				values[j] = float32(rng.IntN(7))
			case "transcripts":
				if values[j] = float32(1 + rng.IntN(6)); rng.IntN(m.Cols+1) == 0 {
					values[j] = 0
				}
			}
			if s.Precision != schedule.FP32 && m.Name != "class" && m.Name != "transcripts" { // as 16 bits hold them
				values[j] = float32(math.Round(float64(values[j])*64) / 64)
			}
			want[i][j] = float64(values[j])
		}
		if err := p.Write(m, values); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a run must not rely on the largest values that the previous run found
		for _, n := range s.Nodes {
			devicetest.Evaluate(n.Op, want)
		}
		if _, err := p.Run(1); err != nil {
			t.Fatal(err)
		}
	}
	held(t, "twice", p, s, want)
}

// held holds all matrices of a program to double precision, after a run.
func held(t *testing.T, after string, p device.Program, s *schedule.Schedule, want [][]float64) {
	t.Helper()
	for i, m := range s.Matrices {
		if m.Private() {
			continue
		}
		got := make([]float32, m.Elements())
		if err := p.Read(m, got); err != nil {
			t.Fatal(err)
		}
		largest, worst := 0.0, 0.0
		for j, v := range got {
			if math.IsInf(want[i][j], 0) && float64(v) == want[i][j] {
				continue
			}
			largest, worst = max(largest, math.Abs(want[i][j])), max(worst, math.Abs(float64(v)-want[i][j]))
		}
		if !(worst <= holdWithin(s.Precision, m.Name)*largest) {
			t.Errorf("%s: %s is off by %.3g of %.3g", after, m.Name, worst, largest)
		}
	}
}

// holdWithin returns how far off a matrix may be, relative to its largest value: copies of
// parameters in 16 bits, and products of them, are rounded.
func holdWithin(p schedule.Precision, name string) float64 {
	switch {
	case !strings.HasPrefix(name, "copy") && !strings.HasPrefix(name, "product"):
	case p == schedule.BF16:
		return 1.0 / 128
	case p == schedule.FP16:
		return 1.0 / 1024
	}
	return 1e-5
}
