package main

import (
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/tuner/probe"
)

// TestNoiseAdvice: the commands that doctor proposes are valid.
func TestNoiseAdvice(t *testing.T) {
	for _, c := range []struct {
		half float64
		want string
	}{{0.05, "--target-ci 6%"}, {0.979, "--target-ci 99%"}, {0.99, ""}, {1.417, ""}} {
		list := probe.Noise{HalfWidth: c.half}.Advice()
		if len(list) != 1 {
			t.Fatalf("%v: %v", c.half, list)
		}
		_, flag, _ := strings.Cut(list[0].Remedy, ", or accept ")
		if flag != c.want {
			t.Errorf("%v: %q, want %q", c.half, flag, c.want)
		}
		if flag != "" {
			rnnbench(t, "sweep --print-config "+flag).want(t, exit.Done, []string{"target_ci"}, nil)
		}
	}
}
