package main

import (
	"context"
	"slices"

	"rnnbench/impl"
	"rnnbench/results"
	"rnnbench/rnn"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/wisdom"
)

// autoName stands for the technique that the oracle chooses.
const autoName = auto.Name

// Ways to choose where no wisdom speaks, as --auto takes them.
const (
	autoPredict = "predict"
	autoRace    = "race"
)

// oracle decides what auto stands for on a bench.
func (s *settings) oracle(b *bench, c config.Config) *auto.Oracle {
	tool, libraries := b.versions()
	o := &auto.Oracle{
		Device: b.Device, Info: b.info, Techniques: impl.All(), Limit: b.free(), Cache: c.Measure.Cache, Objective: s.objective(), Tool: tool, Libraries: libraries,
		Allowed: func(name string) bool {
			return impl.Lookup(name) != nil && (!isVendor(name) || s.vendor && slices.Contains(b.usual(), name))
		},
		Read: s.readBook,
	}
	if s.auto == autoRace {
		path, err := wisdom.Path(s.wisdom)
		if err != nil {
			path = "" // a user without a home races again
		}
		o.Race = func(p results.Point, specs []grid.Spec) []float64 {
			return o.Measure(context.Background(), path, p, specs)
		}
	}
	return o
}

// readBook reads the wisdom that auto goes by.
func (s *settings) readBook() (*wisdom.Book, error) {
	if err := missingBook(s.wisdom); err != nil {
		return nil, err
	}
	path, err := wisdom.Path(s.wisdom)
	if err != nil { // a user without a home has no wisdom
		return &wisdom.Book{}, nil
	}
	book, err := wisdom.Read(path)
	if err != nil {
		return nil, &failure{exitError, err, "use --wisdom FILE for another file; see rnnbench wisdom --help"}
	}
	return book, nil
}

// isVendor reports whether a technique is a vendor's library.
func isVendor(name string) bool {
	return slices.ContainsFunc(impl.Vendors(), func(t rnn.Technique) bool { return t.Name() == name })
}

// decide replaces auto by what it stands for at p. Other specs stay.
func (b *bench) decide(p results.Point, s grid.Spec) (grid.Spec, error) { return b.oracle.Decide(p, s) }

// tellChoices says which techniques auto stands for, in a line for each reason.
func tellChoices(p *program, specs []grid.Spec) {
	notes, warnings := auto.Tell(specs)
	for _, n := range notes {
		p.note("%s", n)
	}
	for _, w := range warnings {
		p.warn("%s", w)
	}
}
