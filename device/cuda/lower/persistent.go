package lower

import (
	"fmt"

	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/persistent/barrier"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/schedule"
)

// control returns the address of the barrier state of the current persistent operation.
func (e *emitter) control() uint64 {
	return uint64(e.Base) + uint64(e.lowering.barriers[e.at])
}

// forwards returns the commands of op: by the kernel that knobs name, or by the one predicted to be
// the fastest of those that fit.
func (e *emitter) forwards(op schedule.Persistent) ([]launch.Command, error) {
	l := e.lowering.layers[e.at]
	switch form := l.config; {
	case l.err != nil:
		return nil, l.err
	case form.Grouped():
		return []launch.Command{persistent.LaunchForward(e.Target, op, form, e.control(), e.ordered(op, form), e.lowering.sides > 1)}, nil
	}
	if err := barrier.Fits(e.Target, op); err != nil {
		return nil, err
	}
	return []launch.Command{barrier.LaunchForward(e.Target, op, e.control())}, nil
}

// backwards is the same for a gradient.
func (e *emitter) backwards(op schedule.PersistentBackward) ([]launch.Command, error) {
	l := e.lowering.layers[e.at]
	switch form := l.config; {
	case l.err != nil:
		return nil, l.err
	case l.stepwise:
		return e.stepwise(op)
	case form.Grouped():
		return []launch.Command{persistent.LaunchBackward(e.Target, op, form, e.control(), e.lowering.sides > 1)}, nil
	}
	if err := barrier.Fits(e.Target, op); err != nil {
		return nil, err
	}
	return []launch.Command{barrier.LaunchBackward(e.Target, op, e.control())}, nil
}

// stepwise runs a gradient as a cell and a product at each step, if no kernel can hold the layer's
// weights.
func (e *emitter) stepwise(op schedule.PersistentBackward) ([]launch.Command, error) {
	if why := e.Properties.NoProducts; why != "" {
		return nil, fmt.Errorf("cuda: %w: %s", schedule.ErrDevice, why)
	}
	through := op.Cell.Through
	var all []launch.Command
	for t := op.Steps - 1; t >= 0; t-- {
		step := op.StepBack(t)
		product := schedule.Gemm{A: op.Recurrent(t), B: op.R, C: op.Carry[through], Accumulate: op.Cell.DirectPrev(through)}
		all = append(all, pointwise.Step(e.Target, op.Cell.Name+"_backward", op.Cell.Backward, step, step.Next[0]),
			launch.Command{Product: gemm.Product(e.Target, product)})
	}
	return all, nil
}

// Fits declines layers that no kernel can hold, before anything is launched or allocated.
func (p *Lowering) Fits() error {
	t := p.target(0)
	i := -1
	for op := range p.schedule.Operations() {
		i++
		if l, chosen := p.layers[i]; chosen && l.err == nil && !l.stepwise && !l.config.Grouped() {
			if err := barrier.Fits(t, op); err != nil {
				return err
			}
		}
	}
	return nil
}

// ordered reports whether all of op's weights are packed in the layout of configuration t.
func (e *emitter) ordered(op schedule.Persistent, t persistent.Config) bool {
	for _, r := range op.R {
		if e.lowering.weights[r.M.ID] != t.Order {
			return false
		}
	}
	return true
}
