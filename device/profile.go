package device

import (
	"time"

	"rnnbench/rnn/schedule"
)

// A Profiler is a Program that can measure where the time of a run goes.
type Profiler interface {
	// Profile runs the schedule n times, one run after the other, and measures each operation.
	Profile(n int) (Profile, error)
}

// A Profile is where the time of runs went.
type Profile struct {
	Workers int
	Teams   int // of workers: operations of different teams may run at the same time
	Groups  []ProfileGroup
	Runs    []ProfileRun
}

// A ProfileGroup is the operations of one kind and size. Counts are of one run.
type ProfileGroup struct {
	Name         string  // the kind and, for products, the sizes: "gemm 64×512×256"
	Count        int     // operations that run
	Within       int     // further operations that run as part of these
	FLOPs, Bytes int64   // of both
	Predicted    float64 // seconds, by the device's model; 0: it has none
}

// A ProfileRun is the times of one run. Taken and Busy have an element per group.
type ProfileRun struct {
	Wall  time.Duration
	Taken []time.Duration // from the start of each operation to the end of its last share
	Busy  []time.Duration // of all workers, in shares of these operations
}

// An Interpreter is a device that may lack compiled code for a cell and then interprets it, which
// takes several times as long.
type Interpreter interface {
	// Interpreted lists the cells of s that the device interprets.
	Interpreted(s *schedule.Schedule) []string
}
