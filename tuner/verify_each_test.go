package tuner_test

import (
	"context"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
)

// A placed device simulates other rounding in the second half of a batch: it changes the inputs of those sequences by a
// small share. Tests may spoil what is read.
type placed struct {
	device.Device
	batch int
	parts map[string]float32 // by matrix
	spoil func(name string, values []float32)
}

type placedProgram struct {
	device.Program
	placed
}

func (d placed) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	return placedProgram{p, d}, err
}

func (p placedProgram) Write(m *schedule.Matrix, src []float32) error {
	if part := p.parts[m.Name]; part != 0 {
		src = slices.Clone(src)
		for i := range src {
			if i/m.Cols%p.batch >= p.batch/2 {
				src[i] += part * src[i] * float32(1-i%7%2*2)
			}
		}
	}
	return p.Program.Write(m, src)
}

func (p placedProgram) Read(m *schedule.Matrix, dst []float32) error {
	err := p.Program.Read(m, dst)
	if p.spoil != nil {
		p.spoil(m.Name, dst)
	}
	return err
}

// TestCopiesAtKinks: if copies of a sequence are rounded differently, they lie on different sides of a kink. Then the
// gradients of weights are right, though not one copy's gradients times the number of copies. Faults are still found.
func TestCopiesAtKinks(t *testing.T) {
	p := relu("fp16", 1)
	p.Hidden, p.Input, p.Batch, p.Steps = 96, 96, 64, 24
	const last = 63 // a copy, of the other half
	row := func(i int) int { return i / p.Hidden % p.Batch }
	for _, flops := range []float64{1e7, 1e8} { // steps of three sequences, and some sequences wholly
		tuner.SetReferenceFLOPs(t, flops)
		check := func(parts map[string]float32, spoil func(name string, v []float32)) record.Record {
			s := once(&tuner.Sweep{Device: placed{open(t), p.Batch, parts, spoil}})
			recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, "cudnnstyle"))
			if err != nil {
				t.Fatal(err)
			}
			return recs[0]
		}
		rounds := map[string]float32{"x": 0x1p-11}
		r := check(rounds, nil)
		if v := r.Verify; r.Status != record.OK || v.Method != record.VerifyStepwise || v.Kinks.Units == 0 || 20*v.Kinks.Near > v.Kinks.Units || v.Error > v.Tolerance/4 {
			t.Errorf("%v operations: %s, %+v", flops, r.Status, v)
		}
		for name, spoil := range map[string]func(name string, v []float32){
			"weights": func(name string, v []float32) {
				for i := range v {
					if name == "dR0" || name == "dW0" {
						v[i] *= 1.02
					}
				}
			},
			"a copy's gradients": func(name string, v []float32) {
				for i := range v {
					if name == "d(x·W)0" && row(i) == last {
						v[i] *= 1.3
					}
				}
			},
			"a copy's states": func(name string, v []float32) {
				if name == "h0" {
					v[len(v)-1] += 0.3
				}
			},
		} {
			if r := check(rounds, spoil); r.Status != record.Incorrect {
				t.Errorf("%v operations, %s: %s, %+v", flops, name, r.Status, r.Verify)
			}
		}
		if r := check(map[string]float32{"x": 0x1p-11, "dy": 0x1p-4}, nil); r.Status != record.Incorrect {
			t.Errorf("%v operations, gradients of half the batch: %s, %+v", flops, r.Status, r.Verify)
		}
	}
}
