package tuner

import (
	"rnnbench/record"

	"rnnbench/rnn/axis"
)

// Spread orders tasks so that the first of them, however many there is time for, cover the axes
// evenly. The next task is always the one whose values, and pairs of values, occurred least often
// so far. Ties keep their order.
func Spread(tasks []Task) []Task {
	number := map[pair]int{}
	left := make([][]int, len(tasks))
	for i, t := range tasks {
		for _, p := range pairs(t.Point) {
			if _, ok := number[p]; !ok {
				number[p] = len(number)
			}
			left[i] = append(left[i], number[p])
		}
	}
	had := make([]int, len(number))
	var out []Task
	for range tasks {
		next, least := -1, 0
		for i, mine := range left {
			n := 0
			for _, p := range mine {
				n += had[p]
			}
			if mine != nil && (next < 0 || n < least) {
				next, least = i, n
			}
		}
		for _, p := range left[next] {
			had[p]++
		}
		left[next] = nil
		out = append(out, tasks[next])
	}
	return out
}

// A pair is values of two axes of a point, or of one axis twice.
type pair struct {
	axes   [2]int
	values [2]any
}

func pairs(p record.Point) (all []pair) {
	var values []any
	for _, a := range axis.All() {
		values = append(values, a.Field(&p))
	}
	for i, v := range values {
		for j, w := range values[:i+1] {
			all = append(all, pair{[2]int{i, j}, [2]any{v, w}})
		}
	}
	return all
}
