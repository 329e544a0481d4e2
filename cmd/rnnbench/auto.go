package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/impl"
	"rnnbench/results"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/wisdom"
)

// autoName stands for the technique that tuning found to be the fastest.
const autoName = "auto"

// fallback is what auto stands for where no wisdom speaks of a point, nor
// untuned: what libraries do.
const fallback = "cudnnstyle"

// untuned lists what auto tries, in this order, where no wisdom speaks of p: what recorded layers say
// is mostly the fastest there, with its own settings. Linear recurrences are scanned. Layers of few
// sequences are persistent, and those whose recurrent weights a core's or a chip's own memory has room
// for, on a GPU unless there are many sequences; but with too few steps nothing makes up for starting.
func untuned(device string, p results.Point) []string {
	const (
		few    = 4 // sequences
		many   = 64
		start  = 8 // steps
		onChip = 24 << 20
		inCore = 1 << 20
	)
	var names []string
	if c := cell.Lookup(p.Cell); c != nil {
		if c.Recurrent == 0 || c.Surrogate != nil {
			names = append(names, "scan")
		}
		bytes := 4
		if p.Precision == rnn.FP16.String() || p.Precision == rnn.BF16.String() {
			bytes = 2
		}
		bytes *= c.Recurrent * p.Hidden * p.Hidden
		fits := bytes <= inCore
		if strings.HasPrefix(device, "cuda-") {
			fits = bytes <= onChip && p.Batch <= many
		}
		if c.Recurrent > 0 && p.Steps >= start && (p.Batch <= few || fits) {
			names = append(names, "persistent")
		}
	}
	return append(names, fallback)
}

// An oracle knows what auto stands for.
type oracle struct {
	file   string // --wisdom
	vendor bool   // --with-vendor
	cache  string

	book *wisdom.Book // nil: not read yet
}

// read reads the book.
func (o *oracle) read() error {
	if o.book != nil {
		return nil
	}
	if err := missingBook(o.file); err != nil {
		return err
	}
	path, err := wisdom.Path(o.file)
	if err != nil { // a user without a home has no wisdom
		o.book = &wisdom.Book{}
		return nil
	}
	b, err := wisdom.Read(path)
	if err != nil {
		return &failure{exitError, err, "use --wisdom FILE for another file; see rnnbench wisdom --help"}
	}
	o.book = b
	return nil
}

// mayBe reports whether auto may be a technique: a vendor's library where it is
// wanted, and where the device has it.
func (b *bench) mayBe(name string) bool {
	return impl.Lookup(name) != nil && (!isVendor(name) || b.oracle.vendor && slices.Contains(b.usual(), name))
}

// isVendor reports whether a technique is a vendor's library.
func isVendor(name string) bool {
	return slices.ContainsFunc(impl.Vendors(), func(t rnn.Technique) bool { return t.Name() == name })
}

// decide replaces auto by what the wisdom says of p, or of the nearest shape that
// has an answer which can run here, or by what is usual for such a point. Other specs stay.
func (b *bench) decide(p results.Point, s grid.Spec) (grid.Spec, error) {
	if s.Name != autoName || s.Choice != nil {
		return s, nil
	}
	if len(s.Knobs) > 0 {
		return s, fmt.Errorf("--impl %s: auto chooses its own settings: omit %s", s, s.Knobs)
	}
	if err := b.oracle.read(); err != nil {
		return s, err
	}
	declined, strange := "", ""
	for _, m := range b.oracle.book.Lookup(b.info.Key, b.oracle.cache, p) {
		if impl.Lookup(m.Impl) == nil {
			strange += passedOver(m, grid.Unknown("technique", m.Impl, implNames()))
			continue
		}
		if !b.mayBe(m.Impl) {
			continue
		}
		l, err := tuner.Adapt(b.Device, impl.All(), p, grid.Spec{Name: m.Impl, Label: s.Label, Knobs: knob.Params(m.Knobs)}, b.free())
		if err != nil {
			return s, err
		}
		if l.Fit(b.free()); l.Reason != "" {
			declined = fmt.Sprintf("; %s of %v cannot run here: %s", m.Impl, m.Point, l.Reason)
			continue
		}
		if err := b.unknownKnob(m, l); err != nil {
			strange += passedOver(m, err)
			continue
		}
		s.Name, s.Knobs = m.Impl, l.Spec.Knobs
		s.Choice = &results.Choice{By: autoName, Match: m.Kind, Octaves: m.Distance, Why: b.why(m) + declined + strange, Impl: b.spelled(p, s)}
		return s, nil
	}
	for _, s.Name = range untuned(b.info.Key, p) {
		if s.Name == fallback {
			break
		}
		l, err := tuner.Adapt(b.Device, impl.All(), p, grid.Spec{Name: s.Name, Label: s.Label}, b.free())
		if err != nil {
			return s, err
		}
		if l.Fit(b.free()); l.Reason == "" {
			break
		}
		declined += fmt.Sprintf("; %s cannot run here: %s", s.Name, l.Reason)
	}
	s.Choice = &results.Choice{By: autoName, Match: "default", Why: "no tuned entry at or near this point" + declined + strange, Impl: b.spelled(p, s)}
	return s, nil
}

// spelled is what a choice came to.
func (b *bench) spelled(p results.Point, s grid.Spec) string {
	return spelledOut(s.Name, s.Knobs, p, b.info.Key)
}

// unfollowed is what a choice's reason says of entries that mean nothing to this
// program.
const unfollowed = " cannot be used: "

func passedOver(m wisdom.Match, err error) string {
	return fmt.Sprintf("; the tuned entry for %v%s%v", m.Point, unfollowed, err)
}

// unknownKnob finds a setting of an entry for which there is a knob neither here,
// where l is what was made of it, nor at its own point, which may have others, nor
// anywhere on devices of this kind.
func (b *bench) unknownKnob(m wisdom.Match, l *tuner.Layout) error {
	known := l.Settings()
	for _, k := range b.Device.Vocabulary() {
		known[k.Name] = 0
	}
	unknown := func() string {
		for _, name := range slices.Sorted(maps.Keys(m.Knobs)) {
			if _, ok := known[name]; !ok {
				return name
			}
		}
		return ""
	}
	if unknown() != "" && m.Kind != wisdom.Exact {
		own, err := tuner.Adapt(b.Device, impl.All(), m.Point, grid.Spec{Name: m.Impl, Knobs: knob.Params(m.Knobs)}, b.free())
		if err != nil {
			return err
		}
		maps.Copy(known, own.Settings())
	}
	if name := unknown(); name != "" {
		return grid.Unknown("knob", name, slices.Sorted(maps.Keys(known)))
	}
	return nil
}

// why says what a choice rests on.
func (b *bench) why(m wisdom.Match) string {
	at := "the fastest"
	if m.Tried > 1 {
		at = fmt.Sprintf("the fastest of %d", m.Tried)
	}
	if m.Kind == wisdom.Nearest {
		at += fmt.Sprintf(" at %v, %.2g doublings away", m.Point, m.Distance)
	}
	if m.RunnerUp != "" && m.Lead > 0 {
		at += fmt.Sprintf("; %s was %.1f %% slower", m.RunnerUp, 100*m.Lead)
	}
	tool, libraries := b.versions()
	if stale := m.Stale(tool, libraries); stale != nil {
		at += "; stale: " + strings.Join(stale, ", ")
	}
	return at
}

// tellChoices says what auto came to, once for each kind of answer.
func (p *program) tellChoices(specs []grid.Spec) {
	count := map[string]int{}
	unknown := map[string]int{} // points of which no wisdom speaks, by technique
	example := map[string]string{}
	stale := ""
	var strange []string // what is said of entries that cannot be followed
	for _, s := range specs {
		if s.Choice == nil {
			continue
		}
		why := slices.DeleteFunc(strings.Split(s.Choice.Why, "; "), func(part string) bool {
			if !strings.Contains(part, unfollowed) {
				return false
			}
			if !slices.Contains(strange, part) {
				strange = append(strange, part)
			}
			return true
		})
		count[s.Choice.Match]++
		if s.Choice.Match == "default" {
			unknown[s.Name]++
		}
		if example[s.Choice.Match] == "" {
			example[s.Choice.Match] = strings.Join(why, "; ")
		}
		if _, old, ok := strings.Cut(s.Choice.Why, "; stale: "); ok {
			stale, _, _ = strings.Cut(old, "; ")
		}
	}
	if n := count[wisdom.Exact]; n > 0 {
		p.note("auto: tuned entries for %s", plural(n, "point"))
	}
	if n := count[wisdom.Nearest]; n > 0 {
		p.note("auto: nearest tuned entries for %s", plural(n, "point"))
	}
	var usual []string
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		usual = append(usual, fmt.Sprintf("%s at %s", name, plural(unknown[name], "point")))
	}
	if len(usual) > 0 {
		p.warn("auto uses %s: %s; rnnbench tune finds the fastest technique there", strings.Join(usual, ", "), example["default"])
	}
	if len(strange) > 0 {
		more := ""
		if n := len(strange) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		p.warn("%s%s; rnnbench tune finds the fastest technique there", strange[0], more)
	}
	if stale != "" {
		p.warn("some tuned entries are from other versions (%s); rnnbench tune updates them", stale)
	}
}
