// Package knob defines named integers that a tuner may set.
//
// The package does not know what they mean. Techniques and devices list their
// knobs and read their values.
package knob

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Knob is one tunable integer. Values are those worth trying; the first is
// the default. Where Max is set, any integer from Min to Max is accepted.
// An Internal knob is for tests and experiments: it is accepted, but no list
// offers it, and it has one value worth trying.
type Knob struct {
	Name     string
	Doc      string
	Values   []int
	Min, Max int
	Internal bool
}

// Public returns the knobs that are not Internal.
func Public(knobs []Knob) []Knob {
	return slices.DeleteFunc(slices.Clone(knobs), func(k Knob) bool { return k.Internal })
}

// Accepts reports whether v is a value of k.
func (k Knob) Accepts(v int) bool {
	return slices.Contains(k.Values, v) || k.Max > 0 && k.Min <= v && v <= k.Max
}

// Find is the knob of that name among knobs; nil: there is none.
func Find(knobs []Knob, name string) *Knob {
	for i := range knobs {
		if knobs[i].Name == name {
			return &knobs[i]
		}
	}
	return nil
}

// Reject is the error for v, which is not one of k's values.
func (k Knob) Reject(v int) error {
	return fmt.Errorf("knob %s cannot be %d: it takes %s", k.Name, v, k.Offer())
}

// Offer spells the values that k takes: "0 to 8", "0, 16, 64".
func (k Knob) Offer() string {
	if k.Max > 0 {
		return fmt.Sprintf("%d to %d", k.Min, k.Max)
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(k.Values), " ", ", "), "[]")
}

// Params assigns values to knobs by name.
type Params map[string]int

// Complete returns p with the defaults of knobs filled in, or an error that
// names the first knob or value that is not offered.
func (p Params) Complete(knobs []Knob) (Params, error) {
	out := make(Params, len(knobs))
	for _, k := range knobs {
		out[k.Name] = k.Values[0]
	}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		k := Find(knobs, name)
		if k == nil {
			if len(knobs) == 0 {
				return nil, fmt.Errorf("unknown knob %q: no knobs apply here", name)
			}
			return nil, fmt.Errorf("unknown knob %q: the knobs are %s", name, strings.Join(Names(knobs), ", "))
		}
		if !k.Accepts(p[name]) {
			return nil, k.Reject(p[name])
		}
		out[name] = p[name]
	}
	return out, nil
}

// Names returns the names of the knobs that are not Internal.
func Names(knobs []Knob) (names []string) {
	for _, k := range Public(knobs) {
		names = append(names, k.Name)
	}
	return names
}

// Split divides p by name between the knobs of two owners. Settings that neither owns go to the
// first, whose Complete will report them.
func (p Params) Split(second []Knob) (first, rest Params) {
	first, rest = Params{}, Params{}
	for name, v := range p {
		if slices.ContainsFunc(second, func(k Knob) bool { return k.Name == name }) {
			rest[name] = v
		} else {
			first[name] = v
		}
	}
	return first, rest
}

// String formats p sorted by name, as flags and records spell it: "a=1:b=2".
func (p Params) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		parts = append(parts, name+"="+strconv.Itoa(p[name]))
	}
	return strings.Join(parts, ":")
}

// Parse reads what String writes.
func Parse(s string) (Params, error) {
	p := Params{}
	if s == "" {
		return p, nil
	}
	for part := range strings.SplitSeq(s, ":") {
		name, value, ok := strings.Cut(part, "=")
		v, err := strconv.Atoi(value)
		if !ok || name == "" || err != nil {
			return nil, fmt.Errorf("%q is not a knob setting: write name=integer", part)
		}
		if _, twice := p[name]; twice {
			return nil, fmt.Errorf("knob %s is set twice", name)
		}
		p[name] = v
	}
	return p, nil
}

// OneAtATime returns the default setting, then each other value of each knob
// with the others at their defaults.
func OneAtATime(knobs []Knob) []Params {
	all := []Params{{}}
	for _, k := range knobs {
		for _, v := range k.Values[1:] {
			all = append(all, Params{k.Name: v})
		}
	}
	return all
}

// Combinations returns every setting in which at most n of knobs differ from
// their defaults, those with fewer first. Defaults are left out of settings.
func Combinations(knobs []Knob, n int) []Params {
	all := []Params{{}}
	last := []int{-1} // the last knob that each setting turns
	for from := 0; n > 0; n-- {
		to := len(all)
		for i := from; i < to; i++ {
			for j := last[i] + 1; j < len(knobs); j++ {
				for _, v := range knobs[j].Values[1:] {
					p := maps.Clone(all[i])
					p[knobs[j].Name] = v
					all, last = append(all, p), append(last, j)
				}
			}
		}
		if from = to; from == len(all) {
			break
		}
	}
	return all
}
