package rnn

import (
	"math"

	"rnnbench/rnn/schedule"
)

// Poison writes values that are not numbers to where the plan's schedule leaves its answer, so that
// whatever a run does not write is found. Call Write and the program's Prepare after it: some inputs
// share a matrix with the answer.
func Poison(p *Plan, mem Memory) error {
	nan := float32(math.NaN())
	filled := map[*schedule.Matrix][]float32{}
	var order []*schedule.Matrix
	for _, r := range p.results() {
		v := r.view
		values := filled[v.M]
		if values == nil {
			values = make([]float32, v.M.Elements())
			if v != v.M.All() {
				if err := mem.Read(v.M, values); err != nil {
					return err
				}
			}
			filled[v.M], order = values, append(order, v.M)
		}
		for row := v.Row; row < v.Row+v.Rows; row++ {
			line := values[row*v.M.Cols+v.Col:][:v.Cols]
			for i := range line {
				line[i] = nan
			}
		}
	}
	for _, m := range order {
		if err := mem.Write(m, filled[m]); err != nil {
			return err
		}
	}
	return nil
}
