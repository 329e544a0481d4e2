package tuner_test

import (
	"slices"
	"testing"

	"rnnbench/record"
	"rnnbench/tuner"
)

// TestSpread stops a grid after each task: no value of an axis occurs much more often than another, and
// every task occurs once.
func TestSpread(t *testing.T) {
	var tasks []tuner.Task
	for _, cell := range []string{"gru", "lstm", "rnn-tanh"} {
		for _, hidden := range []int{128, 256, 512, 1024} {
			for _, batch := range []int{1, 4, 16, 64} {
				tasks = append(tasks, tuner.Task{Point: record.Point{Cell: cell, Hidden: hidden, Input: hidden, Batch: batch}})
			}
		}
	}
	got := tuner.Spread(tasks)
	if len(got) != len(tasks) || slices.ContainsFunc(tasks, func(a tuner.Task) bool {
		return !slices.ContainsFunc(got, func(b tuner.Task) bool { return a.Point == b.Point })
	}) {
		t.Fatalf("%d tasks of %d, or others", len(got), len(tasks))
	}
	for _, value := range []func(record.Point) any{
		func(p record.Point) any { return p.Cell }, func(p record.Point) any { return p.Hidden }, func(p record.Point) any { return p.Batch },
	} {
		all := map[any]int{}
		for _, x := range tasks {
			all[value(x.Point)] = 0
		}
		for i, x := range got {
			all[value(x.Point)]++
			least, most := len(got), 0
			for _, n := range all {
				least, most = min(least, n), max(most, n)
			}
			if most-least > 2 {
				t.Fatalf("after %d tasks: %v", i+1, all)
			}
		}
	}
}
