package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"rnnbench/impl"
	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/wisdom"
)

// oracle returns the oracle that chooses techniques for auto.
func (b *Bench) oracle(from Options) *auto.Oracle {
	c := from.Config
	tool, libraries := b.Versions()
	o := &auto.Oracle{
		Device: b.Device, Info: b.Info, Techniques: impl.All(), Limit: b.Free(), Cache: c.Measure.Cache, Objective: from.Objective, Tool: tool, Libraries: libraries,
		Verified: from.Verified && c.Measure.Verify,
		Allowed: func(name string) bool {
			return impl.Lookup(name) != nil && !slices.Contains(c.Grid.SkipImpl, name) && (!IsVendor(name) || from.Vendor && slices.Contains(b.defaultTechniques(), name))
		},
		Read: from.readWisdom,
	}
	if from.Race {
		path, err := wisdom.Path(from.Wisdom)
		if err != nil || from.ReadOnly {
			path = "" // each command races again, as without a home folder
		}
		o.Race = func(p record.Point, specs []grid.Spec) []float64 {
			return o.Measure(context.Background(), path, p, specs)
		}
	}
	return o
}

// readWisdom reads the wisdom that auto follows.
func (o Options) readWisdom() (*wisdom.Book, error) {
	if err := wisdom.Missing(o.Wisdom); err != nil {
		return nil, err
	}
	path, err := wisdom.Path(o.Wisdom)
	if err != nil { // without a home folder there is no wisdom
		return &wisdom.Book{}, nil
	}
	book, err := wisdom.Read(path)
	if err != nil {
		return nil, exit.With(exit.Error, err, "use --wisdom FILE for another file; see rnnbench wisdom --help")
	}
	return book, nil
}

// IsVendor reports whether a technique is a vendor's library.
func IsVendor(name string) bool {
	return slices.ContainsFunc(impl.Vendors(), func(t rnn.Technique) bool { return t.Name() == name })
}

// Decide replaces auto by the technique chosen at p. It returns other specs unchanged.
func (b *Bench) Decide(p record.Point, s grid.Spec) (grid.Spec, error) { return b.Oracle.Decide(p, s) }

// TellChoices says which techniques auto chose, one line per reason.
func (b *Bench) TellChoices(specs []grid.Spec) {
	notes, warnings := auto.Tell(specs)
	for _, n := range notes {
		b.tell.Note("%s", n)
	}
	for _, w := range warnings {
		b.tell.Warn("%s", w)
	}
}

// Versions returns the versions on which wisdom depends: the program's, and those of the device's
// libraries, with its number of workers.
func (b *Hardware) Versions() (tool string, libraries map[string]string) {
	libraries = maps.Clone(b.Info.Libraries)
	if libraries == nil {
		libraries = map[string]string{}
	}
	libraries["workers"] = fmt.Sprint(b.Info.Workers)
	return b.version, libraries
}
