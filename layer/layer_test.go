package layer_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"rnnbench/device"
	"rnnbench/layer"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
	"rnnbench/rnn/torch"
)

func open(t *testing.T) *layer.Device {
	t.Helper()
	t.Setenv("RNNBENCH_WISDOM", t.TempDir()+"/wisdom.toml")
	d, err := layer.Open("cpu:2", "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// A host holds the host program's tensors of a plan by name, in float32.
type host struct {
	plan    *layer.Plan
	slots   []rnn.Slot
	tensors map[string][]float32
}

// hosted makes the tensors of a plan, which are zero, and binds them.
func hosted(t *testing.T, p *layer.Plan) *host {
	t.Helper()
	h := &host{plan: p, tensors: map[string][]float32{}}
	for i := 0; ; i++ {
		s, ok, err := p.Tensor(i)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return h
		}
		n := 1
		for _, d := range s.Shape {
			n *= d
		}
		h.slots = append(h.slots, s)
		h.tensors[s.Name] = make([]float32, n)
		h.bind(t, s.Name)
	}
}

func (h *host) bind(t *testing.T, name string) {
	t.Helper()
	if err := h.plan.Bind(name, unsafe.Pointer(&h.tensors[name][0]), device.Float32); err != nil {
		t.Fatal(err)
	}
}

func (h *host) run(t *testing.T) {
	t.Helper()
	if err := h.plan.Forward(0); err != nil {
		t.Fatal(err)
	}
	if _, train := h.tensors["grad_output"]; train {
		if err := h.plan.Backward(0); err != nil {
			t.Fatal(err)
		}
	}
}

// swapped exchanges the first two of three dimensions.
func swapped[F any](v []F, rows, cols, each int) []F {
	out := make([]F, len(v))
	for r := range rows {
		for c := range cols {
			copy(out[(c*rows+r)*each:][:each], v[(r*cols+c)*each:][:each])
		}
	}
	return out
}

// TestReference compares plans with the float64 reference, in the names and layouts of PyTorch.
func TestReference(t *testing.T) {
	d := open(t)
	for _, test := range []struct {
		description string
		batch       int
		steps       int
		lengths     string // shortest first
	}{
		{"cell=lstm,input=5,hidden=7,layers=2", 3, 6, ""},
		{"cell=lstm,input=5,hidden=33,batchfirst=1,direction=both", 4, 5, ""},
		{"cell=gru,input=9,hidden=18,layers=2,direction=both,batchfirst=1", 2, 3, ""},
		{"cell=gru,input=3,hidden=16,direction=reverse", 1, 4, ""},
		{"cell=rnn-tanh,input=4,hidden=8,layers=3", 1, 1, ""},
		{"cell=lstm,input=6,hidden=20,projection=5", 2, 4, ""},
		{"cell=lstm-peephole,input=6,hidden=8", 5, 3, ""},
		{"cell=slstm,input=4,hidden=8,heads=2", 2, 4, ""},
		{"cell=sru,input=6,hidden=6,layers=2", 2, 7, ""},
		{"cell=mingru,input=6,hidden=9", 3, 7, ""},
		{"cell=lstm,input=5,hidden=8,layers=2,direction=both", 4, 6, "2+3+3+6"},
		{"cell=gru,input=5,hidden=8,layers=2,batchfirst=1", 3, 5, "1+4+5"},
		{"cell=lstm,input=5,hidden=33,layers=2,precision=int8", 2, 3, ""},
	} {
		for _, pass := range rnn.Passes() {
			if strings.Contains(test.description, "int8") && pass == rnn.Train.String() {
				continue // declined
			}
			for _, technique := range []string{"auto", "naive", "cudnnstyle", "cudnnstyle:streams=3", "persistent", "persistent:streams=4", "scan", "scc"} {
				compare(t, d, test.description, layer.Request{Batch: test.batch, Steps: test.steps, Pass: pass, Technique: technique}, test.lengths)
			}
		}
	}
}

// compare runs a request, twice, and compares the answer with the reference.
func compare(t *testing.T, d *layer.Device, description string, r layer.Request, lengths string) {
	t.Helper()
	l, err := d.NewLayer(description)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := problemOf(t, description, r, lengths)
	r.Lengths = append(r.Lengths, rnn.SequenceLengths(p)...)
	plan, err := l.Plan(r)
	if errors.Is(err, schedule.ErrUnsupported) && r.Technique != "auto" {
		return
	}
	if err != nil {
		t.Fatalf("%s, %+v: %v", description, r, err)
	}
	data := rnn.NewData(p, 3, p.Batch, "normal")
	arrays, err := torch.Arrays(data, oracle.Reference(data), torch.Source{})
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]torch.Array{}
	for _, a := range arrays {
		given[a.Name] = a
	}
	h, swap := hosted(t, plan), strings.Contains(description, "batchfirst=1")
	inOrder := func(s rnn.Slot) bool {
		return !swap || !slices.Contains([]string{"input", "output", "grad_output", "grad_input"}, s.Name)
	}
	for _, s := range h.slots {
		if v, ok := given[s.Name].Values.([]float32); ok && s.Kind != rnn.ForwardTaken && s.Kind != rnn.BackwardTaken {
			if !inOrder(s) {
				v = swapped(v, p.Steps, p.Batch, s.Shape[2])
			}
			copy(h.tensors[s.Name], v)
		}
	}
	tolerance := usual
	if p.Precision == rnn.INT8 {
		tolerance = 4 * p.Precision.Epsilon()
	}
	for range 2 {
		h.run(t)
		for _, s := range h.slots {
			if s.Kind != rnn.ForwardTaken && s.Kind != rnn.BackwardTaken {
				continue
			}
			want, ok := given[s.Name].Values.([]float64)
			if !ok || len(want) != len(h.tensors[s.Name]) {
				t.Fatalf("%s, %+v: the reference has no %s of shape %v", description, r, s.Name, s.Shape)
			}
			if !inOrder(s) {
				want = swapped(want, p.Steps, p.Batch, s.Shape[2])
			}
			if err := within(tolerance, h.tensors[s.Name], want); err != nil {
				t.Errorf("%s, %+v: %s: %v", description, r, s.Name, err)
			}
		}
	}
}

// usual is the tolerance in fp32, relative to the largest value.
const usual = 2e-5

func near(got []float32, want []float64) error { return within(usual, got, want) }

func within(tolerance float64, got []float32, want []float64) error {
	most, scale := 0.0, 1e-6
	for i, x := range want {
		most, scale = max(most, math.Abs(float64(got[i])-x)), max(scale, math.Abs(x))
		if got[i] != got[i] {
			return errors.New("not a number")
		}
	}
	if most > tolerance*scale {
		return fmt.Errorf("differs by %g of %g", most, scale)
	}
	return nil
}

// problemOf returns the problem of a request, read by other code than that of package layer.
func problemOf(t *testing.T, description string, r layer.Request, lengths string) rnn.Problem {
	t.Helper()
	p := rnn.Problem{Cell: cell.LSTM, Layers: 1, Batch: r.Batch, Steps: r.Steps, Pass: rnn.Pass(slices.Index(rnn.Passes(), r.Pass)), Lengths: rnn.Lengths(lengths)}
	for pair := range strings.SplitSeq(description, ",") {
		key, value, _ := strings.Cut(pair, "=")
		n := 0
		_, _ = fmt.Sscan(value, &n)
		switch key {
		case "cell":
			p.Cell = cell.Lookup(value)
		case "input":
			p.Input = n
		case "hidden":
			p.Hidden = n
		case "layers":
			p.Layers = n
		case "projection":
			p.Projection = n
		case "heads":
			p.Heads = n
		case "precision":
			p.Precision = rnn.Precision(slices.Index(rnn.Precisions(), value))
		case "direction":
			p.Direction = rnn.Direction(slices.Index(rnn.Directions(), value))
		}
	}
	return p
}
