package oracle

import (
	"math"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// wrongWeights returns an answer for d that is honest but for its weights, which have so many bits of
// mantissa.
func wrongWeights(d *rnn.Data, bits int) []Tensor {
	coarse := narrowed(d)
	for i := range coarse.Tensors {
		t := &coarse.Tensors[i]
		if t.PerSequence || t.Rows == 1 {
			continue
		}
		values := make([]float32, len(t.Values))
		for k, v := range t.Values {
			values[k] = keepBits(v, 23-bits)
		}
		t.Values = values
	}
	return roundedAnswer(coarse)
}

// roundedAnswer is the answer of an honest evaluation of d, whose values are rounded already.
func roundedAnswer(d *rnn.Data) []Tensor {
	r := newReference(d)
	r.lossy = &rounding{precision: d.Problem.Precision}
	r.forward()
	if d.Problem.Pass == rnn.Train {
		r.backward()
	}
	return r.answer()
}

// TestWrongPrecision: fp32 by TF32, and bf16 by weights of 4 bits, are found in a forward
// pass and in training. An honest answer is right, by far. With weights of so few units, and over so
// few steps, the formula alone finds none of them.
func TestWrongPrecision(t *testing.T) {
	for _, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.RNNTanh, cell.SRU, cell.SLSTM} {
		for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
			for _, of := range []struct {
				precision rnn.Precision
				bits      []int
			}{{rnn.FP32, []int{10, 13, 15, 17, 7}}, {rnn.TF32, []int{8, 7}}, {rnn.FP16, []int{7, 6, 5, 3}}, {rnn.BF16, []int{4, 3, 2}}} {
				p := rnn.Problem{Cell: c, Pass: pass, Input: 96, Hidden: 96, Layers: 1, Batch: 2, Steps: 40, Precision: of.precision}
				d := rnn.NewData(p, 1, 2, "normal")
				want := Reference(d)
				if dev, err := Compare(p, roundedAnswer(narrowed(d.Off(0x1p-30, 3))), want); err != nil || dev.Error > dev.Tolerance/2 {
					t.Errorf("%v: honest: %v, %v", p, dev, err)
				}
				for _, bits := range of.bits {
					if dev, err := Compare(p, wrongWeights(d, bits), want); err != nil || dev.OK() {
						t.Errorf("%v by weights of %d bits: %v, %v", p, bits, dev, err)
					}
				}
			}
		}
	}
}

// TestToleranceOfLongRuns: a tolerance does not grow with the steps of cells that forget.
func TestToleranceOfLongRuns(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Pass: rnn.Train, Input: 32, Hidden: 64, Layers: 1, Batch: 4, Steps: 4000}
	d := rnn.NewData(p, 1, 2, "normal")
	for _, name := range []string{"h_l0", "c_l0", "dx"} {
		if e, ok := expect(d, name, 0); !ok || e.tolerance() > 2e-5 {
			t.Errorf("%s: %v", name, e.tolerance())
		}
	}
	if e, _ := expect(d, "grad_weight_hh_l0", 0); e.tolerance() > 3e-4 {
		t.Errorf("weights: %v", e.tolerance())
	}
}

// TestHalfSums: products that are summed in fp16 are found, where sums are long.
func TestHalfSums(t *testing.T) {
	p := rnn.Problem{Cell: cell.RNNTanh, Input: 512, Hidden: 512, Layers: 1, Batch: 1, Steps: 3, Precision: rnn.FP16}
	d := rnn.NewData(p, 1, 1, "normal")
	v, stored := &rounding{precision: rnn.FP16}, narrowed(d)
	h, n := widen(stored.Get("h0_l0")), p.Hidden
	got := Reference(d)
	got[0].Values = nil
	for step := range p.Steps {
		next := make([]float64, n)
		for u := range next {
			sum := v.operand(float64(d.Get("bias_ih_l0")[u]) + float64(d.Get("bias_hh_l0")[u]))
			for k, x := range stored.Get("x")[step*n : (step+1)*n] {
				sum = v.operand(sum + float64(x)*float64(stored.Get("weight_ih_l0")[u*n+k]))
			}
			for k, x := range h {
				sum = v.operand(sum + x*float64(stored.Get("weight_hh_l0")[u*n+k]))
			}
			next[u] = v.operand(math.Tanh(sum))
		}
		h = next
		got[0].Values = append(got[0].Values, next...)
	}
	if dev, err := Compare(p, got, Reference(d)); err != nil || dev.OK() {
		t.Errorf("sums in fp16: %v, %v", dev, err)
	}
}
