package cuda_test

import (
	"fmt"
	"strings"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
)

// fixed is a technique with these settings, the defaults of the others, and no knob to turn.
type fixed struct {
	rnn.Technique
	settings knob.Params
}

func (fixed) Knobs(rnn.Problem) []knob.Knob { return nil }

func (f fixed) Plan(p *rnn.Plan, _ knob.Params) error {
	all, err := f.settings.Complete(f.Technique.Knobs(p.Problem))
	if err != nil {
		return err
	}
	return f.Technique.Plan(p, all)
}

// TestNewtonLayers runs layers by Newton's method on the emulated GPU: iterations that read the guess of
// another, with sequences that begin anew, and a gradient that is one scan or, of two states, takes iterations.
func TestNewtonLayers(t *testing.T) {
	d, _ := emulated(t)
	converged := fixed{impl.Lookup("newton"), knob.Params{"iterations": 16}} // as small layers do
	for _, c := range diagonals(t)[1:] {                                     // the first is linear
		p := rnn.Problem{Cell: c, Input: 3, Hidden: 37, Layers: 1, Batch: 2, Steps: 45}
		if len(c.States) > 1 {
			p.Hidden, p.Resets, p.Precision = 13, 10, rnn.BF16
		} else if testing.Short() {
			continue
		}
		if c.Newton.Back != nil {
			p.Pass = rnn.Train
		}
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			impltest.Run(t, d, converged, []rnn.Problem{p})
		})
	}
}

// TestNewtonCompiles: NVRTC, if it is here, compiles the kernels of an iteration and of the gradient without
// memory on the stack.
func TestNewtonCompiles(t *testing.T) {
	compiler := hopper(t)
	for _, c := range diagonals(t)[1:] {
		p := rnn.Problem{Cell: c, Input: 8, Hidden: 256, Layers: 1, Batch: 1, Steps: 65536}
		if c.Newton.Back != nil {
			p.Pass = rnn.Train
		}
		_, s, err := rnn.Layout(impl.Lookup("newton"), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		launches, texts, err := cuda.Sources(s, nil, h200())
		if err != nil {
			t.Fatal(err)
		}
		scans := map[string]bool{}
		for i, launch := range launches {
			if !strings.HasPrefix(launch.Name, "scan") || scans[texts[i]] {
				continue
			}
			scans[texts[i]] = true
			image, err := compiler.Compile("scan", texts[i])
			if err != nil {
				t.Fatalf("%v: %v", c, err)
			}
			if stack, err := most(stackRecord, image); err != nil || stack > 0 {
				t.Errorf("%s of %v: %d bytes of stack, %v", launch.Name, c, stack, err)
			}
		}
		if want := 1 + int(p.Pass); len(scans) < want {
			t.Errorf("%v: %d kernels, want %d", c, len(scans), want)
		}
	}
}
