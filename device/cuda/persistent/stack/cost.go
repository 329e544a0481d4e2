package stack

import (
	"fmt"

	"rnnbench/device"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/knob"
)

// pays reports whether the stack is predicted to be clearly faster than its layers one after the
// other. It is false outside of what was measured, and if knobs configure the layers.
func (st *Stack) pays(k knob.Params, p driver.Properties) bool {
	for _, name := range []string{"resident", "cluster", "groups", "samples", "tile", "lanes", "tensor", "share"} {
		if k[name] != 0 {
			return false
		}
	}
	op, layers, most := st.layers[0], len(st.layers), 128
	switch {
	case op.Train || st.Hidden < 128 || st.Weights == driver.Single && !(st.Exact && layers >= 4 && st.Hidden <= 512):
		return false
	case st.Exact:
		most = 8
	case st.bulk != nil && layers == 2:
		most = 64
	case st.bulk != nil:
		most = 256
	case layers == 2 || st.Gates == 1:
		most = 32
	}
	alone, fits := persistent.NewChooser(&launch.Target{Knobs: k, Properties: p}, 1).Cheapest(st.Layer)
	if !fits || st.sequences() > most {
		return false
	}
	const rate, start = persistent.CycleRate / 1e6, 10 // in microseconds, as when the stacks were measured
	steps := float64(op.Steps)
	product := 2 * float64(st.Batch*st.takes) * float64(st.Hidden*st.Hidden) / 300e6
	apart := float64(layers)*(alone.Cycles()/rate+start/steps) + float64(layers-1)*product
	return st.microseconds()*(steps+float64(layers-1))/steps+start/steps < 0.9*apart
}

// Stacked layers, in microseconds: fitted to 19 stacks, to 12 %.
const (
	stepCost      = 0.5
	productCost   = 0.65 // a layer of 512 units and 16 sequences
	gateCost      = 0.12 // and each of its gates
	fewShare      = 0.65 // least share for fewer than 16 sequences
	exactCost     = 2.1  // single precision,
	exactSequence = 0.26 // and each sequence
)

// Stacked layers by the kernel for many sequences, in microseconds: fitted to 11 stacks, to 15 %.
const (
	bulkStep     = 1.15
	bulkLarge    = 0.75  // 512 units
	bulkSequence = 0.011 // each sequence
	bulkRate     = 0.045 // each sequence of 512 units, if products are the limit
)

// microseconds predicts a step of all layers, to 12 %, and of the kernel for many sequences, to 15
// %.
func (st *Stack) microseconds() float64 {
	large, sequences := float64(st.Hidden)/512, float64(st.sequences())
	if st.bulk != nil {
		return max(bulkStep+bulkLarge*large+bulkSequence*(1+large)*sequences, bulkRate*large*sequences)
	}
	if st.Exact {
		return stepCost + large*(exactCost+exactSequence*sequences)
	}
	return stepCost + max(1, large)*max(fewShare, sequences/16)*(productCost+gateCost*float64(st.Gates))
}

// about describes the kernel of st.
func (st *Stack) about() launch.About {
	return launch.About{
		Variant: st.Kernel(), Config: st.String(), Seconds: persistent.StartTime + float64(st.Steps())*st.Step(), Error: st.fit().Deviation,
		Group: device.Group{Blocks: st.blocks, Samples: st.sequences(), Spread: true, Tensor: true, Steps: st.Steps()},
	}
}

// Kernel returns the name of the variant that runs st.
func (st *Stack) Kernel() string {
	if st.bulk != nil {
		return "stack-bulk"
	}
	return "stack"
}

func (st *Stack) fit() persistent.Fit {
	if st.bulk != nil {
		return persistent.Fit{Factor: 1.15, Deviation: 0.14}
	}
	return persistent.Fit{Factor: 0.95, Deviation: 0.11}
}

// Option describes st as an option. Its layers are steps of one kernel.
func (st *Stack) Option() device.Option {
	return device.Option{
		Variant: st.Kernel(), Exchange: "words through the L2 cache, of this layer and the one beneath", Config: st.String(),
		Group: fmt.Sprintf("spread %d", st.blocks*len(st.layers)), Source: kernels.Stack{Kernel: st.Kernel()}.Place(),
		Cycles: st.microseconds() * 1e-6 * persistent.CycleRate, Step: st.Step(), Start: persistent.StartTime, Floor: persistent.GridExchange,
	}
}

// Steps returns how many steps the kernel takes: each layer begins a step after the layer beneath.
func (st *Stack) Steps() int { return st.layers[0].Steps + len(st.layers) - 1 }

// Step returns the predicted seconds of a step of all layers.
func (st *Stack) Step() float64 {
	return st.fit().Seconds(st.microseconds() * 1e-6 * persistent.CycleRate)
}
