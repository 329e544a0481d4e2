package persistent

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Candidates lists how a layer of c can run in groups of blocks that knobs allow, the cheapest
// first.
func Candidates(c *cell.Cell, hidden, batch int, weights driver.Element, k knob.Params, p driver.Properties) []Config {
	b := Chooser{Target: &launch.Target{Knobs: k, Properties: p}}
	r := kernels.NewRecurrence(&schedule.Sequence{Cell: c}, c.Inference)
	all, _ := b.configs(Layer{Cell: c, Hidden: hidden, Gates: c.Recurrent, Batch: batch, Weights: weights, Exact: weights == driver.Single, Within: within(c), Inputs: r.Inputs()}, false)
	return all
}

// BackwardCandidates lists the same for the gradient of such a layer.
func BackwardCandidates(c *cell.Cell, hidden, batch int, weights driver.Element, k knob.Params, p driver.Properties) []Config {
	b := Chooser{Target: &launch.Target{Knobs: k, Properties: p}}
	all, _ := b.configs(Layer{Cell: c, Hidden: hidden, Gates: c.Recurrent, Batch: batch, Weights: weights, Exact: weights == driver.Single}, true)
	return all
}
