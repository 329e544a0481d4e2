package main

import (
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner/tuning"
)

// winnerFormats lists the formats in which winners can be printed; jsonl prints their records.
func winnerFormats() []string { return append(table.Formats(), "jsonl") }

// writeWinners prints a table of winners, or another one instead.
func writeWinners(p *program, w *tuning.Winners, instead *table.Table, format string) error {
	switch {
	case format == "jsonl":
		return table.JSONL(p.out, w.Records)
	case instead != nil:
		return instead.Write(p.out, format, p.style())
	}
	return w.Table().Write(p.out, format, p.style())
}

// tellNoise prints a note if most records are noisy.
func tellNoise(p *program, recs []record.Record) {
	if noise := quantity.StandingOf(quantity.Latest(recs)).Headline(); noise != "" {
		p.note("%s", noise)
	}
}
