package device

import (
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// An Explainer is a device that chooses among kernels and can say how it chose.
type Explainer interface {
	// Explain returns how s would run, without allocating its matrices.
	Explain(s *schedule.Schedule, k knob.Params) (Explanation, error)
}

// An Explanation is how a schedule would run.
type Explanation struct {
	Kernels []Kernel // that one run launches
	Choices []Choice // of which kernel runs a layer
	Passes  []Pass   // of lowering, in order
}

// A Choice is the choice of a kernel for a layer, or for several equal layers.
type Choice struct {
	Layer  string // in words
	Count  int    // number of such layers
	Steps  int
	Runs   Option
	Others []Option // by expected time, then options that knobs rule out, and last options that do not fit
}

// An Option is a kernel variant that could run a layer, in its best configuration.
type Option struct {
	Variant  string
	Exchange string  // how its blocks exchange states
	Group    string  // blocks that share one copy of the weights, as in "cluster 16"
	Source   string  // the file of its kernel and the function in it
	Config   string  // in words; "": it does not fit
	Cycles   float64 // expected for a step of all layers that run side by side; 0: there is no model
	Step     float64 // the same in seconds
	Start    float64 // seconds of the kernel outside its steps
	Floor    float64 // least seconds of a step's exchange; 0: unknown
	Why      string  // why it was not chosen or, for the chosen one, why it was; "": by expected time alone
}

// A Pass is one step of lowering, with its findings.
type Pass struct {
	Name  string
	Found []string
}
