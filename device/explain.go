package device

import (
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// An Explainer is a device that chooses among kernels and can say how it chose.
type Explainer interface {
	// Explain says how s would run, without allocating its matrices.
	Explain(s *schedule.Schedule, k knob.Params) (Explanation, error)
}

// An Explanation is how a schedule would run.
type Explanation struct {
	Kernels []Kernel // that one run launches
	Choices []Choice // of which kernel runs a layer
	Passes  []Pass   // in the order in which the schedule was lowered
}

// A Choice is that of the kernel for a layer, or for several that are alike.
type Choice struct {
	Layer  string // in words
	Count  int    // of such layers
	Steps  int
	Runs   Option
	Others []Option // the fastest expected first, then those that knobs rule out; those that do not fit come last
}

// An Option is a kernel variant that could run a layer, in its best configuration.
type Option struct {
	Variant  string
	Exchange string  // how its blocks exchange states
	Group    string  // the blocks that share one copy of the weights, as in "cluster 16"
	Source   string  // the file of its kernel and the function in it
	Config   string  // in words; "": it does not fit
	Cycles   float64 // expected of a step of all layers that run side by side; 0: no model knows it
	Step     float64 // the same in seconds
	Start    float64 // seconds that the kernel takes besides its steps
	Floor    float64 // seconds that the exchange of a step takes at least; 0: unknown
	Why      string  // why it does not run; of the one that runs, why no other does; "": expected time alone
}

// A Pass is what one step of lowering found.
type Pass struct {
	Name  string
	Found []string
}
