package rnn

// What tests of turns look at.

func (t *Turn) Units() int  { return t.units }
func (t *Turn) From() []int { return t.from }
func (t *Turn) Back(r Result, rows int, values []float32) []float32 {
	return t.back(r, rows, values, new([]float32))
}
