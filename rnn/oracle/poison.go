package oracle

import (
	"math"
	"slices"

	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// Poison writes values that are not numbers to where the plan's schedule leaves its answer, so that
// whatever a run does not write is found. Call Write and the program's Prepare after it: some inputs
// share a matrix with the answer.
func Poison(p *rnn.Plan, mem rnn.Memory) error {
	parts := map[*schedule.Matrix][]schedule.View{}
	var order []*schedule.Matrix
	for _, r := range p.Answer() {
		m := r.View.M
		if r.View.Empty() {
			continue
		}
		if parts[m] == nil {
			order = append(order, m)
		}
		parts[m] = append(parts[m], r.View)
	}
	var values []float32
	for _, m := range order {
		values = slices.Grow(values[:0], m.Elements())[:m.Elements()]
		if parts[m][0] != m.All() {
			if err := mem.Read(m, values); err != nil {
				return err
			}
		}
		for _, v := range parts[m] {
			for row := v.Row; row < v.Row+v.Rows; row++ {
				line := values[row*m.Cols+v.Col:][:v.Cols]
				for i := range line {
					line[i] = float32(math.NaN())
				}
			}
		}
		if err := mem.Write(m, values); err != nil {
			return err
		}
	}
	return nil
}
