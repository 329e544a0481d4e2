package oracle

import (
	"math/rand/v2"
	"slices"

	"rnnbench/internal/parallel"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// kept reads m, whose rows are steps × batch, and returns the rows of distinct sequences.
func (c *stepper) kept(m *schedule.Matrix) ([]float64, error) {
	c.buffer = slices.Grow(c.buffer[:0], m.Elements())[:m.Elements()]
	if err := c.mem.Read(m, c.buffer); err != nil {
		return nil, err
	}
	return compact(c.buffer, m.Cols, c.distinct, c.Batch), nil
}

// output checks the output layer. If gradients are checked, it returns that of the last layer's
// output.
func (c *stepper) output(flops float64, gradients bool) (above []float64, err error) {
	if c.Head == nil {
		if gradients {
			above = widen(c.data.Get("dy"))
		}
		return above, nil
	}
	train := c.Pass == rnn.Train
	prob, name := []float64(nil), "prob"
	if train {
		name = "gradient of logits"
		if prob, err = c.kept(c.Head.Prob); err != nil {
			return nil, err
		}
	} else {
		prob = c.tensor("prob").Values
	}
	if c.Transcript > 0 {
		sequences(c, flops, name, prob)
	} else {
		c.classes(flops, name, prob)
	}
	if !gradients {
		return nil, nil
	}
	if above, err = c.kept(c.Head.DY); err != nil {
		return nil, err
	}
	v, h, top := c.Output, c.Out(), c.outputs
	rng := rand.New(rand.NewPCG(c.Seed, 1<<62))
	signs := draw(rng, h)
	c.weights("grad_weight_out", prob, v, 0, v, factorsOf(top, h, signs), signs, h)
	c.weights("grad_bias_out", prob, v, 0, v, ones(len(prob)/v), []float64{1}, 1)
	c.rowProducts("dy", above, h, flops, c.Steps, func(row, _ int, col []float64) float64 {
		var sum float64
		for k, g := range prob[row*v : (row+1)*v] {
			sum += g * col[k]
		}
		return sum
	}, c.data.Get("weight_out"), v, h)
	return above, nil
}

// classes checks losses and probabilities or, where training, the gradients in place of probabilities.
func (c *stepper) classes(flops float64, name string, prob []float64) {
	v, h, distinct := c.Output, c.Out(), c.distinct
	top := c.outputs[c.History*distinct*h:]
	weight, bias, loss := c.data.Get("weight_out"), c.data.Get("bias_out"), c.tensor("loss").Values
	plan := choose(c.Seed, c.Steps, distinct, flops/(2*float64(v)*float64(h)+50*float64(v)))
	found := make([][]difference, c.Steps)
	parallel.For(c.Steps, func(t int) {
		logits := make([]float64, v)
		found[t] = make([]difference, 2)
		for i := range plan[t] {
			row := t*distinct + (t+i)%distinct
			for k := range logits {
				logits[k] = float64(bias[k]) + dot(weight[k*h:], top[row*h:(row+1)*h])
			}
			class, counts := c.data.Class(row)
			found[t][0].add(loss[row], softmax(logits, c.Groups, class), row)
			if c.Pass == rnn.Train {
				lossGradient(logits, c.Groups, class, counts)
			}
			for k, want := range logits {
				found[t][1].add(prob[row*v+k], want, row*v+k)
			}
		}
	})
	c.judge("loss", loss, 1, differences(found, 0))
	c.judge(name, prob, v, differences(found, 1))
	c.noteSteps(plan)
}
