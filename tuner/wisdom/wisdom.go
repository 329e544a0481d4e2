// Package wisdom stores what tuning found: the fastest technique, with its knob
// settings, at each point on each device.
//
// A Book is stored as a TOML file that people can read, merge and send to others with the same device.
// The package knows techniques and devices only by name. Callers check whether a setting can run.
package wisdom

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"rnnbench/record"
	"rnnbench/rnn/axis"
)

// Schema names the version of the file.
const Schema = "rnnbench.wisdom/1"

// A Book is a list of entries, at most one for each device, cache, point and objective.
type Book struct {
	Entries []Entry
}

// An Entry is the winner at one point. Times are in seconds.
type Entry struct {
	Device    string // key, as in records
	Cache     string // "hot" or "cold"
	Point     record.Point
	Objective string // what was minimised: "" for time, or record.OfEnergy

	Impl     string
	Knobs    map[string]int // all knobs of the technique and the device
	Seconds  float64        // median of a run
	Joules   float64        // of a run, where energy is the objective; else 0
	RunnerUp string         // the fastest of the others, as --impl spells it; "": there was none
	Lead     float64        // how much longer RunnerUp takes, as a share
	Tried    int            // candidates that were measured
	Complete bool           // the search ended within its budget
	Unsure   bool           // the lead may be chance, or there were too few samples to say
	By       string         // how it was found: "" by tuning, ByRace

	Tool      string            // version of the program
	Libraries map[string]string // of the device, with their versions
	Run       string
	Time      time.Time
}

// ByRace marks an entry that a short race of a few candidates found. It counts only at its own point.
const ByRace = "race"

// same reports whether two entries have the same device, cache, point and objective.
func (e *Entry) same(o *Entry) bool {
	return e.Device == o.Device && e.Cache == o.Cache && e.Point == o.Point && e.Objective == o.Objective
}

// on returns the entry that is the same as e; nil: there is none.
func (b *Book) on(e *Entry) *Entry {
	i := slices.IndexFunc(b.Entries, func(o Entry) bool { return o.same(e) })
	if i < 0 {
		return nil
	}
	return &b.Entries[i]
}

// Stale lists the versions that changed since e was found, such as "driver 550.1, now 560.2". Only
// the given libraries are compared.
func (e *Entry) Stale(tool string, libraries map[string]string) []string {
	var list []string
	differ := func(what, was, is string) {
		if was != is {
			list = append(list, fmt.Sprintf("%s %s, now %s", what, cmp.Or(was, "none"), cmp.Or(is, "none")))
		}
	}
	differ("rnnbench", e.Tool, tool)
	names := make([]string, 0, len(libraries))
	for name := range libraries {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		differ(name, e.Libraries[name], libraries[name])
	}
	return list
}

// Here is the versions of the libraries of the devices at hand, such as of their drivers, by the devices' keys.
// Of other devices none are known.
type Here map[string]map[string]string

// Put adds e, or replaces the entry that is the same.
func (b *Book) Put(e Entry) {
	e.Point = e.Point.Timed()
	if o := b.on(&e); o != nil {
		*o = e
		return
	}
	b.Entries = append(b.Entries, e)
}

// Merge adds the entries of another book. Of two same entries the newer stays. It returns how many
// entries were taken, and how many of them replaced one.
func (b *Book) Merge(other *Book) (taken, replaced int) {
	for _, e := range other.Entries {
		o := b.on(&e)
		switch {
		case o == nil:
			b.Entries = append(b.Entries, e)
			taken++
		case e.Time.After(o.Time):
			*o = e
			taken, replaced = taken+1, replaced+1
		}
	}
	return taken, replaced
}

// How a lookup found an entry.
const (
	Exact   = "exact"   // the entry has the very point
	Nearest = "nearest" // the entry has a near shape
)

// A Match is an entry of the point asked for, or of one near it.
type Match struct {
	Entry
	Kind     string  // Exact or Nearest
	Distance float64 // in octaves, summed over the sizes
}

// farthest is the largest distance in octaves at which an entry counts: four times the hidden size,
// or twice the hidden size and half the batch.
const farthest = 2

// Lookup lists the entries for a point on a device, the nearest first. Only entries with the same
// cell, pass, precision and form of input and output count.
func (b *Book) Lookup(device, cache string, p record.Point) []Match {
	return b.LookupFor("", device, cache, p)
}

// LookupFor is Lookup for an objective. Entries tuned for another objective do not count.
func (b *Book) LookupFor(objective, device, cache string, p record.Point) []Match {
	return b.near(objective, cache, p, func(e *Entry) bool { return e.Device == device })
}

// Elsewhere lists the entries for a point on other devices, the nearest first. They say what may be fast
// there, and choose nothing.
func (b *Book) Elsewhere(objective, device, cache string, p record.Point) []Match {
	return b.near(objective, cache, p, func(e *Entry) bool { return e.Device != device })
}

// near lists the entries for a point that may be taken, the nearest first.
func (b *Book) near(objective, cache string, p record.Point, may func(*Entry) bool) []Match {
	p = p.Timed()
	var list []Match
	for _, e := range b.Entries {
		q := e.Point
		octaves, others := axis.Distance(p, q)
		if e.Objective != objective || !may(&e) || e.Cache != cache || others > 0 {
			continue
		}
		m := Match{Entry: e, Kind: Nearest, Distance: octaves}
		if q == p {
			m.Kind = Exact
		}
		if m.Distance <= farthest && (e.By != ByRace || q == p) {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b Match) int {
		if exact := cmp.Compare(a.Kind, b.Kind); exact != 0 {
			return exact
		}
		return cmp.Compare(a.Distance, b.Distance)
	})
	return list
}
