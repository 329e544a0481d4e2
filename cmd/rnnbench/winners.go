package main

import (
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/results"
	"rnnbench/tuner/regret"
	"rnnbench/tuner/tuning"
)

// winnerFormats are those in which winners are printed; the last prints their
// records.
func winnerFormats() []string { return append(table.Formats(), "jsonl") }

// writeWinners prints a table of winners, or how far auto is from them where that is
// asked for.
func writeWinners(p *program, w *tuning.Winners, far *regret.List, format string) error {
	switch {
	case format == "jsonl":
		return table.JSONL(p.out, w.Records)
	case far != nil:
		return far.Table().Write(p.out, format, p.style())
	}
	return w.Table().Write(p.out, format, p.style())
}

// tellNoise says that most records are noisy, where they are.
func tellNoise(p *program, recs []results.Record) {
	if noise := quantity.StandingOf(quantity.Latest(recs)).Headline(); noise != "" {
		p.note("%s", noise)
	}
}
