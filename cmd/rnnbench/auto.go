package main

import (
	"context"
	"slices"

	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/wisdom"
)

// autoName stands for the technique that the oracle chooses.
const autoName = auto.Name

// Values of --auto: how to choose where no wisdom applies.
const (
	autoPredict = "predict"
	autoRace    = "race"
)

// oracle returns the oracle that chooses techniques for auto on b.
func (s *settings) oracle(b *bench, c config.Config) *auto.Oracle {
	tool, libraries := b.versions()
	o := &auto.Oracle{
		Device: b.Device, Info: b.info, Techniques: impl.All(), Limit: b.free(), Cache: c.Measure.Cache, Objective: s.objective(), Tool: tool, Libraries: libraries,
		Allowed: func(name string) bool {
			return impl.Lookup(name) != nil && !slices.Contains(c.Grid.SkipImpl, name) && (!isVendor(name) || s.vendor && slices.Contains(b.defaultTechniques(), name))
		},
		Read: s.readBook,
	}
	if s.auto == autoRace {
		path, err := wisdom.Path(s.wisdom)
		if err != nil {
			path = "" // without a home folder, each command races again
		}
		o.Race = func(p record.Point, specs []grid.Spec) []float64 {
			return o.Measure(context.Background(), path, p, specs)
		}
	}
	return o
}

// readBook reads the wisdom that auto follows.
func (s *settings) readBook() (*wisdom.Book, error) {
	if err := missingBook(s.wisdom); err != nil {
		return nil, err
	}
	path, err := wisdom.Path(s.wisdom)
	if err != nil { // without a home folder there is no wisdom
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

// decide replaces auto by the technique chosen at p. It returns other specs unchanged.
func (b *bench) decide(p record.Point, s grid.Spec) (grid.Spec, error) { return b.oracle.Decide(p, s) }

// tellChoices prints which techniques auto chose, one line per reason.
func tellChoices(p *program, specs []grid.Spec) {
	notes, warnings := auto.Tell(specs)
	for _, n := range notes {
		p.note("%s", n)
	}
	for _, w := range warnings {
		p.warn("%s", w)
	}
}
