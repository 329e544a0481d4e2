package grid

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/internal/nearest"
	"rnnbench/record"
	"rnnbench/rnn/axis"
)

// A Vocabulary holds the names that a grid may use. The package itself knows no cell, technique or
// device.
type Vocabulary struct {
	Words map[string][]string // of each axis, in order; none: any name
	Impls []string            // names in order; nil: any name
	All   []string            // the part of Impls that "all" stands for; nil: all

	// Read turns a word of an axis whose values may be files into that of a point, by the name of the
	// axis. It may read files. Without it words stay as they are.
	Read map[string]func(word string) (string, error)

	// Model returns what the layers of models' files set on the axes of ModelAxes: of all layers, or of
	// those named. Nil: models are refused.
	Model func(files, layers []string) ([]map[string]string, error)

	// Derive returns the value of key for conditions: "flops", "mem" (bytes) or "intensity"
	// (FLOP/byte). For flops, which depends on the point alone, the Spec is zero. Nil: such
	// conditions are refused.
	Derive func(p record.Point, s Spec, key string) (float64, error)
}

// Words returns the words of every axis that has a list of them, with cells as those of cell.
func Words(cells []string) map[string][]string {
	words := map[string][]string{}
	for _, a := range axis.All() {
		if list := a.Values(); list != nil && !a.Open {
			words[a.Name] = slices.Clone(list)
		}
	}
	words["cell"] = cells
	return words
}

// of lists the words of a; nil: any word. Without v only true and false are known.
func (v Vocabulary) of(a axis.Axis) []string {
	if words := v.Words[a.Name]; words != nil || a.Words != nil {
		return words
	}
	return a.Values()
}

// axisNamed finds an axis by its name.
func axisNamed(name string) (axis.Axis, error) {
	if a, ok := axis.Named(name); ok {
		return a, nil
	}
	return axis.Axis{}, Unknown("axis", name, axis.Names())
}

// parse reads values of a, as axis.Axis.Value returns them, and keeps duplicates.
func parse(a axis.Axis, text string, v Vocabulary) ([]any, error) {
	var list []any
	if a.Sized() {
		numbers := text
		if a.Percent {
			numbers = strings.ReplaceAll(text, "%", "")
		}
		sizes, err := ParseValues(numbers, a.Zero)
		if err != nil && a.Percent {
			return nil, fmt.Errorf("%q has no percentages: write whole ones such as 3%%, a list such as 1%%,10%%, or %s", text, a.Zero)
		}
		if err != nil {
			return nil, err
		}
		for _, n := range sizes.List() {
			list = append(list, n)
		}
		return list, nil
	}
	words := v.of(a)
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if word == "all" && words != nil {
			for _, w := range words {
				list = append(list, w)
			}
			continue
		}
		word, err := read(a, word, v)
		if err != nil {
			return nil, err
		}
		list = append(list, word)
	}
	return list, nil
}

// read turns a word of a into its form in a point.
func read(a axis.Axis, word string, v Vocabulary) (string, error) {
	file := a.File != "" && strings.HasSuffix(word, a.File)
	switch {
	case !a.Open && !file:
		return word, known(a.Name, word, v.of(a))
	case word == "":
		return "", fmt.Errorf("it is empty: write %s", strings.Replace(a.Forms, "FILE", "a file's name", 1))
	case v.Read[a.Name] == nil:
		return word, nil
	}
	return v.Read[a.Name](word)
}

// maxName is the length of the longest label or name that fits into tables and figures.
const maxName = 64

// known returns an error if word is not among words. If words is nil, any plain name is right.
func known(kind, word string, words []string) error {
	if words != nil {
		if slices.Contains(words, word) {
			return nil
		}
		return nearest.Unknown(kind, word, words)
	}
	if n := len(word); n > maxName {
		return fmt.Errorf("the name of a %s has %d characters: use at most %d: %s…", kind, n, maxName, word[:20])
	}
	if word == "" || strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.@", r)
	}) {
		return fmt.Errorf("%q is not a name of a %s: use letters, digits and hyphens", word, kind)
	}
	return nil
}

// CheckAxis returns an error if text is wrong for the axis called name. Without a vocabulary it
// cannot check names.
func CheckAxis(name, text string) error {
	a, err := axisNamed(name)
	if err != nil {
		return err
	}
	_, err = parse(a, text, Vocabulary{})
	return err
}

// ParsePoint reads an exact point such as "H=1024,B=32,T=100". It returns the values by the full name
// of each axis; text may name axes by letter or in full.
func ParsePoint(text string) (map[string]string, error) {
	point := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		key, val, ok := strings.Cut(part, "=")
		key, val = strings.TrimSpace(key), strings.TrimSpace(val)
		if !ok || key == "" || val == "" {
			return nil, fmt.Errorf("%q is not an axis with a value: write a point such as H=1024,B=32,T=100 or hidden=1024,batch=32,steps=100", part)
		}
		name := key
		for _, a := range axis.All() {
			if a.Letter != "" && strings.EqualFold(key, a.Letter) {
				name = a.Name
			}
		}
		a, err := axisNamed(name)
		if err != nil {
			return nil, err
		}
		if _, twice := point[name]; twice {
			return nil, fmt.Errorf("%q sets %s twice", text, name)
		}
		list, err := parse(a, val, Vocabulary{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if len(list) != 1 || a.Sized() && strings.Contains(val, ":") {
			return nil, fmt.Errorf("%s has %d values in a point: write one, or use --%s", key, len(list), name)
		}
		point[name] = val
	}
	return point, nil
}
