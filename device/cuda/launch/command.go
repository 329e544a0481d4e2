// Package launch turns operations into what a GPU is given to do. A Target says
// where a program's matrices are; a Command is a kernel, a product or a network
// with its arguments.
package launch

import (
	"rnnbench/device"
	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
)

// A Command is one thing for the GPU to do: a launch, a product, a network or a sum over
// replicas.
type Command struct {
	Launch  *driver.Launch
	Source  *codegen.Source // of the launch
	Product *driver.Product
	Network *driver.NetworkRun
	Sum     *driver.Sum
	About   About
	Seconds float64 // that it is expected to take, where its launcher knows; 0: its operation's bytes tell
	Early   bool    // the launch can begin ahead of the end of one of its kind, and lets the next one
}

// About is what there is to tell of a kernel besides its geometry.
type About struct {
	Variant string  // of the kernels for such an operation
	Config  string  // in words
	Seconds float64 // that a launch is expected to take; 0: no model knows
	Error   float64 // of that model, where it was fitted; 0: not recorded
	Group   device.Group
}

// New is the launch of a kernel with its arguments.
func New(s *codegen.Source, grid, block [3]int, args ...uint64) Command {
	l := &driver.Launch{Name: s.Name, Grid: grid, Block: block, Args: args}
	l.Pack()
	return Command{Launch: l, Source: s}
}

// BlockSize is the number of threads of most kernels.
const BlockSize = 256

// MaxGrid is the largest second dimension of a grid.
const MaxGrid = 65535
