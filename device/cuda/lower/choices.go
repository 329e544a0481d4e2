package lower

import (
	"fmt"
	"reflect"
	"slices"

	"rnnbench/device"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/persistent/stack"
	"rnnbench/rnn/schedule"
)

// Choices says which kernel runs each persistent layer and gradient, and what the alternatives are.
// Equal choices are merged and counted.
func (p *Lowering) Choices() []device.Choice {
	m := &launch.Memory{Elements: p.elements}
	c := persistent.NewChooser(launch.NewTarget(m, p.schedule.Precision, p.Knobs, p.properties), p.sides)
	var all []device.Choice
	i := -1
	for op := range p.schedule.Operations() {
		i++
		l, chosen := p.layers[i]
		node := i - len(p.schedule.Prepare)
		switch op := op.(type) {
		case schedule.Persistent:
			if st := p.Stacks.At[node]; st != nil {
				all = add(all, stacked(st, op))
			} else if chosen {
				x := choiceOf(l, false, persistent.Options(c, op, l.config))
				x.Layer, x.Steps = describe("layer", op.Sequence), op.Steps
				all = add(all, x)
			}
		case schedule.PersistentBackward:
			x := choiceOf(l, true, persistent.BackwardOptions(c, op, l.config))
			x.Layer, x.Steps = describe("gradient", op.Sequence), op.Steps
			all = add(all, x)
		}
	}
	return all
}

// choiceOf describes the choice of l, or of its gradient, among others.
func choiceOf(l layer, backward bool, others []device.Option) device.Choice {
	x := device.Choice{Count: 1, Runs: l.config.Option(backward), Others: others}
	if l.stepwise {
		x.Runs = device.Option{Variant: "stepwise", Exchange: "a kernel for each step", Config: "a cell and a product at each step"}
	}
	if l.refused != nil {
		x.Runs.Why = "no groups of blocks fit: " + l.refused.Error()
	}
	return x
}

// stacked is the choice of one kernel for several layers.
func stacked(st *stack.Stack, op schedule.Persistent) device.Choice {
	return device.Choice{
		Layer: describe("stack of layers", op.Sequence), Count: 1, Steps: st.Steps(), Runs: st.Option(),
		Others: []device.Option{{Variant: "one kernel per layer", Config: "each layer has a kernel of its own", Why: "the stack is expected to be faster, or stack=1 asks for it; stack=2 runs the layers one by one"}},
	}
}

func describe(what string, s schedule.Sequence) string {
	return fmt.Sprintf("%s %s of %d units, %d sequences, %d steps", s.Cell.Name, what, s.Hidden(), s.Batch(), s.Steps)
}

// add appends x, or counts it if all has an equal choice.
func add(all []device.Choice, x device.Choice) []device.Choice {
	i := slices.IndexFunc(all, func(y device.Choice) bool { y.Count = x.Count; return reflect.DeepEqual(x, y) })
	if i < 0 {
		return append(all, x)
	}
	all[i].Count++
	return all
}
