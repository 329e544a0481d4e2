// Package experiments lists the papers' tables and figures, and comparisons with yardsticks. Each paper
// has a package; yardstick has what no paper has.
package experiments

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/experiments/appleyard"
	"rnnbench/experiments/danieli"
	"rnnbench/experiments/diamos"
	"rnnbench/experiments/hwang"
	"rnnbench/experiments/martin"
	"rnnbench/experiments/study"
	"rnnbench/experiments/yardstick"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// All lists every experiment, paper by paper. To add one, write its file and
// add its line here.
func All() []study.Experiment {
	return []study.Experiment{
		appleyard.Table1,
		appleyard.Fig1,
		appleyard.Fig2,
		appleyard.WeightGrad,
		appleyard.Backward,
		appleyard.Inputs,
		diamos.Fig3,
		diamos.Fig4,
		diamos.Fig5,
		diamos.Fig6,
		diamos.Barrier,
		diamos.Memory,
		diamos.Alternatives,
		diamos.Speech,
		diamos.Depth,
		hwang.Fig3,
		hwang.Fig4,
		hwang.Train,
		hwang.Graph,
		martin.Fig1,
		martin.Fig1Training,
		martin.Kernel,
		martin.Train,
		danieli.Crossover,
		danieli.Train,
		yardstick.ScanRates,
		yardstick.Energy,
		yardstick.TrainSmoke,
		yardstick.DeepBench,
		yardstick.Production,
		yardstick.RL,
		yardstick.RandomLayers,
		yardstick.DeepBench16Bit,
		yardstick.CuDNNStacks,
		yardstick.CuDNNFP32,
		yardstick.CuDNNBF16,
		yardstick.CuDNNFP16,
		yardstick.CuDNNTrain,
		yardstick.RivalsCPU,
		yardstick.RivalsGPU,
		yardstick.RivalsScan,
		yardstick.Threads,
		yardstick.TakeHome,
	}
}

// IDs lists the experiments' names.
func IDs() []string {
	var ids []string
	for _, e := range All() {
		ids = append(ids, e.ID)
	}
	return ids
}

// Lookup returns the experiment of that name.
func Lookup(id string) (study.Experiment, error) {
	all := All()
	if i := slices.IndexFunc(all, func(e study.Experiment) bool { return e.ID == id }); i >= 0 {
		return all[i], nil
	}
	return study.Experiment{}, fmt.Errorf("experiments: %w", grid.Unknown("experiment", id, IDs()))
}

// Of is the ID of the experiment that made a run, by the plan's summary; "" if none
// did.
func Of(m record.Manifest) string {
	id, _, _ := strings.Cut(m.Scope.Summary, ":")
	if slices.Contains(IDs(), id) {
		return id
	}
	return ""
}
