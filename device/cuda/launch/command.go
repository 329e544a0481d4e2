// Package launch describes work for a GPU. A Target says where a program's matrices are. A Command
// is a kernel, a product, a network or a sum over replicas, with its arguments.
package launch

import (
	"rnnbench/device"
	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
)

// A Command is one piece of work for the GPU: a launch, a product, a network or a sum over
// replicas.
type Command struct {
	Launch  *driver.Launch
	Source  *codegen.Source // of the launch
	Product *driver.Product
	Network *driver.NetworkRun
	Sum     *driver.Sum
	About   About
	Seconds float64 // predicted time; 0: predict from the bytes that the operation moves
	Early   bool    // the launch may overlap the end of an early one before it, and lets the next one overlap its own
}

// About describes a kernel beyond its geometry.
type About struct {
	Variant string  // name of the kernel variant
	Config  string  // the configuration in words
	Seconds float64 // predicted time of a launch; 0: no model covers it
	Error   float64 // relative error of that model on the points of its fit; 0: not recorded
	Group   device.Group
}

// New returns the launch of a kernel with its arguments.
func New(s *codegen.Source, grid, block [3]int, args ...uint64) Command {
	l := &driver.Launch{Name: s.Name, Grid: grid, Block: block, Args: args}
	l.Pack()
	return Command{Launch: l, Source: s}
}

// BlockSize is the number of threads of most kernels.
const BlockSize = 256

// MaxGrid is the largest second dimension of a grid.
const MaxGrid = 65535
