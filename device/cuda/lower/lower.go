// Package lower turns a schedule into commands for a GPU. It is a list of passes. Each
// pass adds what it has found and leaves the findings of others unchanged. Then the lowering emits
// commands.
package lower

import (
	"fmt"
	"maps"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/persistent/barrier"
	"rnnbench/device/cuda/persistent/stack"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Lowering is what is known about how a schedule runs on a GPU. Passes take and return it by value,
// and never write to a map or slice of one that they were given.
type Lowering struct {
	// The input.
	schedule   *schedule.Schedule
	Knobs      knob.Params // all of them
	properties driver.Properties
	networks   map[driver.Network]Network

	elements        []driver.Element                // how each matrix is stored
	stack.Stacks                                    // layers that run as one kernel
	gemm.SplitPlan                                  // methods of single-precision products
	gemm.SkinnyPlan                                 // factors that are packed for skinny products
	awaited         []bool                          // per node, whether a node lists it in Wait
	keep            map[int]bool                    // products fused with their cells, by node: whether to write them to memory as well
	layers          map[int]layer                   // kernels of persistent layers and gradients, by their index among all operations
	sides           int                             // streams with persistent layers, which share the GPU
	layout                                          // memory
	weights         map[int]persistent.WeightLayout // of packed weights, by matrix
	alias           map[int]bool                    // packed weights that share the memory of their source
	batches         map[int]batch                   // launches of several operations, by the node that launches each
}

// A pass adds to a lowering. An error declines the schedule or a knob.
type pass struct {
	name string
	run  func(Lowering) (Lowering, error)
	show func(*Lowering) []string // lists what it has found; nil: no list
}

// passes run in this order. Then commands are emitted.
var passes = []pass{
	{name: "elements", run: storeElements, show: showElements},  // how each matrix is stored
	{name: "stacks", run: stackLayers, show: showStacks},        // which persistent layers run as one kernel
	{name: "products", run: chooseProducts, show: showProducts}, // how products are formed, which packed factors only they read
	{name: "kept", run: keepProducts},                           // which products of fused cells are read by others
	{name: "layers", run: chooseLayers, show: showLayers},       // which kernel runs each persistent layer and gradient
	{name: "memory", run: placeMatrices, show: showMemory},      // addresses of matrices, scratch memory and shared words
	{name: "weights", run: layWeights, show: showWeights},       // how weights of persistent layers are packed, which need no copy
	{name: "knobs", run: declineKnobs},                          // declines settings that no kernel uses
	{name: "batches", run: batchOperations, show: showBatches},  // which small operations share a launch
}

// New runs the passes for s. Its networks are ready, and k has a value for every knob.
func New(s *schedule.Schedule, k knob.Params, p driver.Properties, networks map[driver.Network]Network) (Lowering, error) {
	return Trace(s, k, p, networks, nil)
}

// Trace is New that also calls report, if it is not nil, with what each pass has found.
func Trace(s *schedule.Schedule, k knob.Params, p driver.Properties, networks map[driver.Network]Network, report func(pass string, found []string)) (Lowering, error) {
	if err := declineResets(s, k); err != nil {
		return Lowering{}, err
	}
	out := Lowering{schedule: s, Knobs: k, properties: p, networks: networks}
	for _, pass := range passes {
		var err error
		if out, err = pass.run(out); err != nil {
			return out, err
		}
		if report != nil && pass.show != nil {
			report(pass.name, pass.show(&out))
		}
	}
	return out, nil
}

// storeElements finds how each matrix is stored, and which nodes others wait for.
func storeElements(p Lowering) (Lowering, error) {
	if p.schedule.Precision == schedule.INT8 {
		return p, fmt.Errorf("cuda: %w: int8 runs on a CPU only", schedule.ErrPrecision)
	}
	p.elements = elementsOf(p.schedule, p.Knobs["sums"])
	p.awaited = make([]bool, len(p.schedule.Nodes))
	for _, n := range p.schedule.Nodes {
		for _, i := range n.Wait {
			p.awaited[i] = true
		}
	}
	return p, nil
}

// stackLayers finds which persistent layers run as one kernel.
func stackLayers(p Lowering) (out Lowering, err error) {
	p.Stacks, err = stack.Find(p.schedule, p.elements, p.Knobs, p.properties)
	return p, err
}

// A layer is the kernel of a persistent layer or of its gradient.
type layer struct {
	config   persistent.Config
	stepwise bool  // no kernel can hold the gradient's weights: it runs a cell and a product at each step
	refused  error // why it has no grouped kernel, if no knob asks for that
	err      error // why it has no kernel
}

// chooseLayers chooses the kernels of persistent layers that are in no stack.
func chooseLayers(p Lowering) (Lowering, error) {
	p.sides, p.layers = sides(p.schedule), map[int]layer{}
	m := &launch.Memory{Elements: p.elements}
	t := launch.NewTarget(m, p.schedule.Precision, p.Knobs, p.properties)
	c := persistent.NewChooser(t, p.sides)
	i := -1
	for op := range p.schedule.Operations() {
		i++
		var l layer
		switch op := op.(type) {
		case schedule.Persistent:
			if p.Own[op.R[0].M.ID] {
				continue
			}
			l.config, l.refused, l.err = c.Forward(op)
			l.withResets(op.Keep)
		case schedule.PersistentBackward:
			l.config, l.refused, l.err = c.Backward(op)
			l.stepwise = l.refused != nil && (barrier.Fits(t, op) != nil || !op.Keep.Empty())
			l.withResets(op.Keep)
		default:
			continue
		}
		p.layers[i] = l
	}
	return p, nil
}

// chooseProducts finds how products are formed. Weights between stacked layers belong to the stack.
func chooseProducts(p Lowering) (Lowering, error) {
	p.SplitPlan = gemm.NewSplitPlan(p.schedule, p.Knobs, p.properties)
	p.SkinnyPlan = gemm.NewSkinnyPlan(p.schedule, p.elements, p.Knobs, p.properties, p.Stacks.Lower)
	p.Kept = maps.Clone(p.Kept)
	for id := range p.Lower {
		delete(p.Kept, id)
	}
	return p, nil
}

// target returns the target of launches for memory at base.
func (p *Lowering) target(base driver.Pointer) *launch.Target {
	m := p.Memory
	m.Base = base
	return launch.NewTarget(&m, p.schedule.Precision, p.Knobs, p.properties)
}
