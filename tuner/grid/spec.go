package grid

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/record"
	"rnnbench/rnn/knob"
)

// A Spec is a technique with the knobs that the user set.
type Spec struct {
	Name  string
	Label string // for tables and legends
	Knobs knob.Params

	Choice *record.Choice // how it was chosen; nil: by the user

	// Instead runs in the place of a chosen technique whose iterations do not converge, or take longer than
	// expected; nil: nothing does.
	Instead *Spec
}

// ParseSpec reads [label=]name[:knob=value...]. The name must be among impls; nil: any name. The label
// is "" where none is given.
func ParseSpec(text string, impls []string) (Spec, error) {
	rest := strings.TrimSpace(text)
	label := ""
	if before, after, ok := strings.Cut(rest, "="); ok && !strings.Contains(before, ":") {
		label, rest = before, after
		if err := known("label", label, nil); err != nil {
			return Spec{}, fmt.Errorf("%.80q: %w", text, err)
		}
	}
	name, settings, colon := strings.Cut(rest, ":")
	if err := known("technique", name, impls); err != nil {
		return Spec{}, err
	}
	if colon && settings == "" {
		return Spec{}, fmt.Errorf("%q ends after its colon: write %s, or %s:knob=value", text, name, name)
	}
	knobs, err := knob.Parse(settings)
	if err != nil {
		return Spec{}, fmt.Errorf("%q: %w", text, err)
	}
	return Spec{Name: name, Label: label, Knobs: knobs}, nil
}

// String writes s as ParseSpec reads it, without the label.
func (s Spec) String() string {
	if len(s.Knobs) == 0 {
		return s.Name
	}
	return s.Name + ":" + s.Knobs.String()
}

// isA reports whether s is o's technique with at least o's settings. s may have more, since records
// have all settings.
func (s Spec) isA(o Spec) bool {
	for k, v := range o.Knobs {
		if w, ok := s.Knobs[k]; !ok || w != v {
			return false
		}
	}
	return s.Name == o.Name
}

// parseSpecs reads lists of specs, in which "all" stands for the names of all. It leaves out those to
// skip, and labels the rest.
func parseSpecs(lists, skip, impls, all []string) ([]Spec, error) {
	var specs []Spec
	add := func(s Spec) error {
		i := slices.IndexFunc(specs, func(o Spec) bool { return o.Name == s.Name && maps.Equal(o.Knobs, s.Knobs) })
		switch {
		case i < 0:
			specs = append(specs, s)
		case specs[i].Label == "": // named before without a label, for instance by all
			specs[i].Label = s.Label
		case s.Label != "" && s.Label != specs[i].Label:
			return fmt.Errorf("--impl: %s is labelled both %q and %q: remove one of them", s, specs[i].Label, s.Label)
		}
		return nil
	}
	words := splitAll(lists)
	if len(words) == 0 {
		words = []string{"all"}
	}
	for _, w := range words {
		if w == "all" {
			for _, name := range all {
				_ = add(Spec{Name: name, Knobs: knob.Params{}}) // without a label it cannot fail
			}
			continue
		}
		s, err := ParseSpec(w, impls)
		if err != nil {
			return nil, fmt.Errorf("--impl: %w", err)
		}
		if err := add(s); err != nil {
			return nil, err
		}
	}
	for _, w := range splitAll(skip) {
		s, err := ParseSpec(w, impls)
		if err != nil {
			return nil, fmt.Errorf("--skip-impl: %w", err)
		}
		specs = slices.DeleteFunc(specs, func(o Spec) bool {
			return o.Name == s.Name && (len(s.Knobs) == 0 || maps.Equal(o.Knobs, s.Knobs))
		})
	}
	if len(specs) == 0 {
		return nil, fmt.Errorf("no technique is left: --skip-impl removes all of --impl")
	}
	labels := map[string]bool{}
	for i := range specs {
		s := &specs[i]
		if s.Label == "" { // with the knobs, to tell settings of one technique apart
			s.Label = s.String()
		}
		if labels[s.Label] {
			return nil, fmt.Errorf("--impl: two techniques are labelled %q: give each its own label, such as one=%s", s.Label, s)
		}
		labels[s.Label] = true
	}
	return specs, nil
}

// splitAll splits lists at commas.
func splitAll(lists []string) []string {
	var words []string
	for _, l := range lists {
		for w := range strings.SplitSeq(l, ",") {
			words = append(words, strings.TrimSpace(w))
		}
	}
	return words
}
