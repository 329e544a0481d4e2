package persistent

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A Layer is what configurations are chosen for: a persistent layer or its gradient.
type Layer struct {
	Cell    *cell.Cell
	Hidden  int            // units
	Gates   int            // gates with recurrent weights
	Batch   int            // sequences
	Weights driver.Element // how weights are stored
	Exact   bool           // single precision throughout
	Within  int            // bound of the state that is multiplied by weights: see bounds.go
	Inputs  int            // inputs per unit and step, if they can be read ahead; else 0
	Resets  bool           // sequences begin anew at some steps: see kernels/resets.go
}

// Layer describes op, for which configurations are chosen.
func (c *Chooser) Layer(op schedule.Persistent) Layer {
	inputs := 0
	if c.Element(op.X) == driver.Single {
		r := kernels.NewRecurrence(&op.Sequence, op.Step(0, schedule.View{}).Program())
		inputs = r.Inputs()
	}
	return Layer{
		Cell: op.Cell, Hidden: op.Hidden(), Gates: op.Cell.Recurrent, Batch: op.Batch(), Weights: c.Element(op.R[0]), Exact: c.Precision == schedule.FP32,
		Within: within(op.Cell), Inputs: inputs, Resets: !op.Keep.Empty(),
	}
}

// gradient describes op's gradient, for which configurations are chosen.
func (c *Chooser) gradient(op schedule.PersistentBackward) Layer {
	return Layer{
		Cell: op.Cell, Hidden: op.Hidden(), Gates: op.Cell.Recurrent, Batch: op.Batch(), Weights: c.Element(op.R), Exact: c.Precision == schedule.FP32,
		Within: 0, Inputs: 0, Resets: !op.Keep.Empty(),
	}
}

// statesOf returns how many values of a unit are kept from step to step.
func statesOf(l Layer) int {
	if l.Resets {
		return len(l.Cell.States) + 2
	}
	return len(l.Cell.States)
}
