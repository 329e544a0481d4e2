package rnn

import "math"

// Glorot gives weights the size of Glorot and Bengio (2010), equation 16: uniform within
// ±√(6/(in+out)), where in and out are the inputs and outputs of a gate's matrix. Biases become 0.
// Convolutions, embeddings, peepholes and what normalises stay as they were drawn. Recurrent weights keep their gain.
func (d *Data) Glorot() {
	p := d.Problem
	scale := func(name string, in, out int) {
		values, by := d.Get(name), float32(math.Sqrt(6*float64(p.Hidden)/float64(in+out))) // drawn within ±1/√Hidden
		for i := range values {
			values[i] *= by
		}
	}
	for i := range p.Reads() {
		scale(p.Named("weight_ih", i), p.FanIn(i/p.Ways()), p.Hidden)
		clear(d.Get(p.Named("bias_ih", i)))
		if p.Cell.Multiplied() > 0 {
			scale(p.Named("weight_hh", i), p.HeadUnits(), p.Hidden/max(1, p.Heads))
		}
		if p.Cell.Recurrent > 0 {
			clear(d.Get(p.Named("bias_hh", i)))
		}
		if p.Projection > 0 {
			scale(p.Named("weight_hr", i), p.Hidden, p.Projection)
		}
	}
	if p.Output > 0 {
		if p.Dense > 0 {
			scale("weight_dense", p.Out(), p.Dense)
			clear(d.Get("bias_dense"))
		}
		scale("weight_out", HeadInput(p), p.Output)
		clear(d.Get("bias_out"))
	}
}
