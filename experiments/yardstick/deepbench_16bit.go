package yardstick

import (
	"rnnbench/experiments/study"
	"rnnbench/record"
)

// DeepBench16Bit is the experiment deepbench-16bit.
var DeepBench16Bit = study.Experiment{
	ID: "deepbench-16bit", Title: "DeepBench's recurrent layers in bf16 and fp16: auto against the fastest technique and against rivals",
	Source:      "DeepBench, code/kernels/rnn_problems.h: training, inference on a server and on a phone",
	TakesRivals: true,
	Parts: func(s study.Size, on study.Target) []study.Part {
		var all []record.Point
		for _, precision := range []string{"bf16", "fp16"} {
			for _, p := range deepbenchLayers(s) {
				p.Precision = precision
				all = append(all, p)
			}
		}
		return byAuto(all, on)
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		return reportAuto(recs, on, "deepbench-16bit", "DeepBench in 16 bits", 20)
	},
}
