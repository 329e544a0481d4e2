package persistent

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Candidates lists how a layer of c can run in groups of blocks that knobs allow, the cheapest
// first.
func Candidates(c *cell.Cell, hidden, batch int, weights driver.Element, k knob.Params, p driver.Properties) []Config {
	b := Chooser{Target: &launch.Target{Knobs: k, Properties: p}}
	r := newRecurrence(&schedule.Sequence{Cell: c}, c.Inference)
	all, _ := b.configs(Layer{cell: c, hidden: hidden, gates: c.Recurrent, batch: batch, weights: weights, exact: weights == driver.Single, within: within(c), inputs: r.inputs()}, false)
	return all
}

// BackwardCandidates lists the same for the gradient of such a layer.
func BackwardCandidates(c *cell.Cell, hidden, batch int, weights driver.Element, k knob.Params, p driver.Properties) []Config {
	b := Chooser{Target: &launch.Target{Knobs: k, Properties: p}}
	all, _ := b.configs(Layer{cell: c, hidden: hidden, gates: c.Recurrent, batch: batch, weights: weights, exact: weights == driver.Single}, true)
	return all
}
