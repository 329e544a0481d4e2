package predict

import (
	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A Program is a schedule and how the workers of a CPU run it.
type Program struct {
	Schedule *schedule.Schedule // as it runs
	Format   simd.Format        // of packed weights
	Engine   *gemm.Engine
	Bytes    int64 // of all matrices
	Teams    []int // the workers of each team; streams are theirs in turn

	Absorbed map[int]bool // nodes that run as part of another one
	Pairs    map[int]int  // per product, a later one for which it packs the same rows
	Formed   map[int]Band // per product, the persistent operation after it, which computes it in blocks

	Workers Workers
}

// Workers say how they share an operation.
type Workers interface {
	// Takers returns how many of a team's members take part in op; 1: its first runs it alone.
	Takers(op schedule.Op, members int) int
	// Meeting returns the time that so many workers take to meet, relative to two.
	Meeting(workers int) float64
	// Band returns how so many workers share op, a persistent operation or its gradient.
	Band(op schedule.Op, workers int) Band
	// Scan returns how so many workers share op, a scan or its gradient.
	Scan(op schedule.Op, workers int) Scan
	// Unsupported returns the error that declines op, which no worker can run.
	Unsupported(op schedule.Op) error
}

// A Band is the largest part of a persistent operation that one worker runs.
type Band struct {
	Sequences, Units int
	Workers          int  // that meet at each step; 1: no other worker has units of these sequences
	InCalls          bool // one call runs all steps of a sequence

	// Of an operation that computes its input product in blocks of steps:
	First   int // steps of the block that all workers compute before the others
	Helpers int // workers without a band, which compute the other blocks; 0: those with one do so among the steps
}

// A Scan is the largest part of a scan that one worker runs.
type Scan struct {
	Rows, Units int  // rows of all its steps
	Together    int  // rows that run in one vector
	Cut         int  // workers that split the time of the same channels
	Meetings    int  // of these workers
	Step        Loop // computes the steps
	Compose     Loop // composes them before, if time is split or in lanes
	Transposed  int  // floats moved between memory and lanes; 0: time is not in lanes, and a row is a row of a step
}

// A Loop is the program that a scan runs for each row.
type Loop struct {
	Program     cell.Program
	Interpreted bool // operation by operation, as no assembly computes the program
	Vectors     int  // that each row has of its own in memory
}
