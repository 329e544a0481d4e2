package oracle

import (
	"fmt"
	"math"
	"slices"
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

// TestWrongIntegers: int8 by weights of 5 bits, or with one scale of a gate's unit that is wrong, is
// found. An honest answer is right, by far.
func TestWrongIntegers(t *testing.T) {
	for _, c := range []*cell.Cell{cell.LSTM, cell.GRU, cell.RNNTanh, cell.SRU} {
		p := rnn.Problem{Cell: c, Input: 96, Hidden: 96, Layers: 1, Batch: 1, Steps: 4, Calls: 5, Precision: rnn.INT8}.Sequence()
		d := rnn.NewData(p, 1, 1, "normal")
		want := Reference(d)
		check := func(what string, ok bool, got []Tensor) {
			t.Helper()
			dev, err := Compare(p, got, want)
			if err != nil || dev.OK() != ok || ok && dev.Error > dev.Tolerance/1.5 {
				t.Errorf("%v, %s: %v, %v", c, what, dev, err)
			}
		}
		check("honest", true, roundedAnswer(narrowed(d.Off(0x1p-30, 3))))
		coarse := narrowed(d)
		for i := range coarse.Tensors {
			if one := &coarse.Tensors[i]; !one.PerSequence && one.Rows > 1 {
				one.Values = slices.Clone(one.Values)
				for at := 0; at < len(one.Values); at += one.Cols {
					most := float32(0)
					for _, v := range one.Values[at : at+one.Cols] {
						most = max(most, float32(math.Abs(float64(v))))
					}
					for k, v := range one.Values[at : at+one.Cols] {
						one.Values[at+k] = float32(math.Round(float64(v/most*15))) * most / 15
					}
				}
			}
		}
		check("weights of 5 bits", false, roundedAnswer(coarse))
		for _, factor := range []float32{-1, 0, 0.25, 2} {
			wrong := narrowed(d)
			for i := range wrong.Tensors {
				if one := &wrong.Tensors[i]; one.Name == "weight_ih_l0" {
					one.Values = slices.Clone(one.Values)
					for k := range one.Cols {
						one.Values[k] *= factor
					}
				}
			}
			check(fmt.Sprintf("one scale %v times as large", factor), false, roundedAnswer(wrong))
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
