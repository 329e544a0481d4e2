package impl_test

import (
	"errors"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/device/cpu/simd"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// manyRows are problems of few units whose gradients are sums over 5,000 to 50,000 rows, steps times sequences.
var manyRows = []rnn.Problem{
	{Input: 2, Hidden: 4, Batch: 3000, Steps: 3, Output: 2},
	{Input: 3, Hidden: 7, Batch: 2000, Steps: 4, Symbols: 5, Embedding: 2, Output: 4, Groups: 2, Weighted: true},
	{Input: 3, Hidden: 8, Batch: 6000, Steps: 1},
	{Input: 2, Hidden: 2, Batch: 270, Steps: 37},
	{Input: 3, Hidden: 3, Batch: 3000, Steps: 3, Output: 1, OneHot: true},
	{Input: 1, Hidden: 1, Batch: 61, Steps: 83},
	{Input: 2, Hidden: 5, Batch: 7, Steps: 801},
	{Input: 2, Hidden: 3, Batch: 1250, Steps: 40},
	{Input: 1, Hidden: 1, Batch: 12000, Steps: 1},
}

// TestGradientsOverManyRows holds gradients over many rows to the reference, at each instruction set. Two sequences are
// repeated over the batch, so that terms are alike and their rounding errors add up.
func TestGradientsOverManyRows(t *testing.T) {
	for l := simd.Generic; l <= simd.Detect(); l++ {
		d, err := cpu.Open(cpu.Options{Threads: 1, Level: &l, InTurn: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Run(l.String(), func(t *testing.T) { gradientsOverManyRows(t, d, l) })
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func gradientsOverManyRows(t *testing.T, d *cpu.Device, l simd.Level) {
	kinds := rnn.Distributions()
	for i, c := range cell.All() {
		for j, p := range manyRows {
			share := 4 // of the combinations, one in so many runs at each instruction set
			if testing.Short() {
				share = 5
			}
			if p.OneHot && c.Window > 1 || testing.Short() && j > 2 || (i+j)%share != int(l)%share {
				continue
			}
			p.Cell, p.Pass, p.Layers = c, rnn.Train, 1
			if l > simd.AVX512 { // which differ in products of BF16 alone
				p.Precision = rnn.BF16
			}
			for k, kind := range kinds {
				if (i+j+k)%len(kinds) > 0 {
					continue
				}
				data := rnn.NewData(p, 1, 2, kind)
				want := oracle.Reference(data)
				for _, tech := range impl.Direct() {
					for _, params := range knob.OneAtATime(tech.Knobs(p)) {
						if dev, ran := gradients(t, d, tech, params, data, want); ran && !dev.OK() {
							t.Errorf("%s %v %v, data %s: %v", tech.Name(), params, p, kind, dev)
						}
						if testing.Short() || j > 2 {
							break
						}
					}
				}
			}
		}
	}
}

// gradients are how far those of a technique are off, if it runs the problem.
func gradients(t *testing.T, d device.Device, tech rnn.Technique, params knob.Params, data *rnn.Data, want []oracle.Tensor) (dev oracle.Deviation, ran bool) {
	t.Helper()
	plan, s, err := rnn.Layout(tech, data.Problem, params)
	if errors.Is(err, schedule.ErrUnsupported) {
		return dev, false
	}
	if err != nil {
		t.Fatal(err)
	}
	prog, err := d.Compile(s, nil)
	if errors.Is(err, schedule.ErrUnsupported) {
		return dev, false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	if err := errors.Join(plan.Write(prog, data), prog.Prepare()); err != nil {
		t.Fatal(err)
	}
	if _, err := prog.Run(1); err != nil {
		t.Fatal(err)
	}
	got, err := oracle.Read(plan, prog)
	if err != nil {
		t.Fatal(err)
	}
	dev, err = oracle.Compare(data.Problem, got, want)
	if err == nil && !dev.OK() {
		dev, _, err = oracle.CompareAgain(data, got)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dev, true
}
