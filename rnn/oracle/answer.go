package oracle

import (
	"fmt"

	"rnnbench/internal/parallel"
	"rnnbench/rnn"
)

// A Tensor is one named part of an answer: see Result.
type Tensor struct {
	Name        string
	Rows, Cols  int
	First       int  // steps left out before the first row: see Result
	Later       int  // steps left out after the last row: see Result
	PerSequence bool // rows are steps × sequences
	Gradient    bool
	UnitError   float64 // of the point-wise functions behind it: see Plan.UnitError
	Values      []float64
	Spread      float64 // usual size of the reference's values, if CompareAgain asks for it

	alone bool      // of states: they follow from what the run left of the layer below, see follow
	data  *rnn.Data // whose right answer it is compared with; nil: there is no measure of its errors
	size  float64   // what differences are relative to; 0: the largest value that is expected
}

// visit visits the parts of the answer where the plan's schedule leaves them: each as a tensor
// without values, and its values, which the next visit overwrites.
func visit(p *rnn.Plan, mem rnn.Memory, each func(t Tensor, values []float32) error) error {
	return p.ReadAnswer(mem, func(r rnn.Result, rows int, values []float32) error {
		return each(Tensor{
			Name: r.Name, Rows: rows, Cols: r.View.Cols, First: r.First, Later: r.Later,
			PerSequence: r.PerSequence, Gradient: r.Gradient, UnitError: p.UnitError,
		}, values)
	})
}

// Read copies the answer from where the plan's schedule leaves it.
func Read(p *rnn.Plan, mem rnn.Memory) ([]Tensor, error) {
	var out []Tensor
	err := visit(p, mem, func(t Tensor, values []float32) error {
		t.Values = make([]float64, len(values))
		parallel.For(t.Rows, func(row int) {
			for i := row * t.Cols; i < (row+1)*t.Cols; i++ {
				t.Values[i] = float64(values[i])
			}
		})
		out = append(out, t)
		return nil
	})
	return out, err
}

// Check is Read and Compare with the reference's answer, for large answers: the tensors that it
// returns have no values.
func Check(p *rnn.Plan, mem rnn.Memory, want []Tensor) (d Deviation, got []Tensor, err error) {
	d = Deviation{Tolerance: 1}
	err = visit(p, mem, func(t Tensor, values []float32) error {
		got = append(got, t)
		if len(got) > len(want) {
			return nil
		}
		one, err := deviation(p.Problem, t, values, want[len(got)-1])
		d = d.OrWorse(one)
		return err
	})
	if err == nil && len(got) != len(want) {
		err = fmt.Errorf("rnn: an answer has %d tensors, not %d", len(got), len(want))
	}
	return d, got, err
}

// ReadDistinct reads the answer as the reference has it: of each step the distinct sequences alone.
// apart is how far all other rows are from those that they copy. d has the inputs of the run, and of
// others before it where they are one sequence.
func ReadDistinct(p *rnn.Plan, mem rnn.Memory, d *rnn.Data) (got []Tensor, apart Deviation, err error) {
	return readDistinct(p, mem, d, d)
}

// readDistinct is ReadDistinct, where measured is the data whose errors were measured.
func readDistinct(p *rnn.Plan, mem rnn.Memory, d, measured *rnn.Data) (got []Tensor, apart Deviation, err error) {
	apart = Deviation{Tolerance: 1}
	distinct := d.Distinct
	err = visit(p, mem, func(t Tensor, values []float32) error {
		one := t
		batch := 1
		if t.PerSequence {
			batch = p.Batch
			one.Rows = t.Rows / batch * min(distinct, batch)
		}
		one.Values = compact(values, t.Cols, min(distinct, batch), batch)
		one.data = measured
		dev, err := deviation(p.Problem, t, values, one.sized(t.UnitError))
		apart = apart.OrWorse(dev)
		got = append(got, one)
		return err
	})
	apart.Tolerance *= 2 // of two answers
	return got, apart, err
}

// sized is t with the size that the reference expects of its values, for a run that is compared with itself.
func (t Tensor) sized(unit float64) Tensor {
	if e, ok := expect(t.data, t.Name, unit); ok && t.PerSequence {
		t.size = e.size
	}
	return t
}

// compact returns the distinct sequences' rows of values, whose rows are steps × batch.
func compact(values []float32, cols, distinct, batch int) []float64 {
	steps := len(values) / (cols * batch)
	out := make([]float64, steps*distinct*cols)
	parallel.For(steps, func(t int) {
		o := out[t*distinct*cols : (t+1)*distinct*cols]
		for i, v := range values[t*batch*cols : t*batch*cols+len(o)] {
			o[i] = float64(v)
		}
	})
	return out
}
