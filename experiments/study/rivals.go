package study

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// A Rival is a program from elsewhere that runs on a target.
type Rival struct {
	Name  string
	Knobs []knob.Knob // names and values
}

// rivalsOf reads which rivals a run had from the facts of its device: "rival pytorch" is
// "2.11.0 graph=0,1".
func rivalsOf(facts map[string]string) []Rival {
	var out []Rival
	for fact, text := range facts {
		name, ok := strings.CutPrefix(fact, record.RivalFact)
		if !ok {
			continue
		}
		r := Rival{Name: name}
		for _, word := range strings.Fields(text) {
			k, values, ok := strings.Cut(word, "=")
			if !ok {
				continue
			}
			one := knob.Knob{Name: k}
			for v := range strings.SplitSeq(values, ",") {
				if n, err := strconv.Atoi(v); err == nil {
					one.Values = append(one.Values, n)
				}
			}
			if len(one.Values) > 0 {
				r.Knobs = append(r.Knobs, one)
			}
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Rival) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Specs returns a rival with its defaults, and with each other value of each knob and of each two knobs.
func (r Rival) Specs() []grid.Spec {
	var out []grid.Spec
	for _, k := range knob.Combinations(r.Knobs, 2) {
		label := r.Name
		if len(k) > 0 {
			label += " " + k.String()
		}
		out = append(out, Spec(label, r.Name, k))
	}
	return out
}

// Labels returns the labels of its specs.
func (r Rival) Labels() (list []string) {
	for _, s := range r.Specs() {
		list = append(list, s.Label)
	}
	return list
}

// Declines says why e cannot run on a target, and what to do about it; "": it can.
func (e Experiment) Declines(on Target) (why, hint string) {
	switch {
	case e.Vendor && !on.GPU:
		return fmt.Sprintf("%s compares with the vendor library, which %s does not have", e.ID, on.Name), "use --device cuda:0 to measure on a GPU"
	case e.Host && on.GPU:
		return fmt.Sprintf("%s measures the threads of a processor, which %s is not", e.ID, on.Name), "use --device cpu"
	case e.Rivals == OnGPU && !on.GPU:
		return fmt.Sprintf("%s compares with rivals on a GPU, which %s is not", e.ID, on.Name), "use --device cuda:0, or reproduce rivals-cpu"
	case e.Rivals == OnCPU && on.GPU:
		return fmt.Sprintf("%s compares with rivals on a processor, which %s is not", e.ID, on.Name), "use --device cpu, or reproduce rivals-gpu"
	case e.Rivals != "" && len(on.Rivals) == 0:
		return fmt.Sprintf("%s compares with rivals, but none that runs on %s is named", e.ID, on.Name), "name one with --rival rivals/pytorch.toml; docs/rivals.md tells more"
	}
	for _, name := range e.Needs {
		if !slices.ContainsFunc(on.Rivals, func(r Rival) bool { return r.Name == name }) {
			return fmt.Sprintf("%s needs the rival %s, which is not named", e.ID, name), "use --rival rivals/takehome.toml --rival rivals/pytorch.toml"
		}
	}
	return "", ""
}

// Kinds of devices that rivals are compared on.
const (
	OnCPU = "cpu"
	OnGPU = "gpu"
	OnAny = "any"
)
