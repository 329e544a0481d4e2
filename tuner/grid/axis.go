package grid

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"rnnbench/record"
)

// A Vocabulary holds the names that a grid may use. The package itself knows no cell, technique or
// device.
type Vocabulary struct {
	Cells, Passes, Precisions, Directions, Impls []string // names in order; nil: any name
	All                                          []string // the part of Impls that "all" stands for; nil: all

	// Lengths turns the text of --lengths into that of a point. It may read files. Nil: the text
	// stays as it is.
	Lengths func(text string) (string, error)

	// Derive returns the value of key for conditions: "flops", "mem" (bytes) or "intensity"
	// (FLOP/byte). For flops, which depends on the point alone, the Spec is zero. Nil: such
	// conditions are refused.
	Derive func(p record.Point, s Spec, key string) (float64, error)
}

// An Axis is one direction of a grid.
type Axis struct {
	Name    string
	Letter  string // short name in points; "": none
	Doc     string
	Zero    string // word for the size 0; "": 0 is not allowed
	Default string
	Words   bool // values are words and not sizes
}

// Axes lists the axes from the outermost loop of a grid to the innermost.
func Axes() []Axis {
	return []Axis{
		{Name: "cell", Doc: "recurrent cell", Default: "lstm", Words: true},
		{Name: "pass", Doc: "pass to run", Default: "forward", Words: true},
		{Name: "precision", Doc: "precision of the matrix products", Default: "fp32", Words: true},
		{Name: "onehot", Doc: "one-hot input: one symbol per time step (true or false)", Default: "false", Words: true},
		{Name: "direction", Doc: "order in which layers read the steps: forward; reverse; both: both ways side by side; alternate: layers in turns, beginning with reverse", Default: "forward", Words: true},
		{Name: "layers", Letter: "L", Doc: "stacked layers", Default: "1"},
		{Name: "input", Letter: "I", Doc: "input features; hidden: the hidden size", Zero: "hidden", Default: "hidden"},
		{Name: "output", Letter: "O", Doc: "classes of the softmax output layer; none: no output layer", Zero: "none", Default: "none"},
		{Name: "hidden", Letter: "H", Doc: "units per layer", Default: "512"},
		{Name: "batch", Letter: "B", Doc: "sequences per batch", Default: "32"},
		{Name: "steps", Letter: "T", Doc: "time steps per sequence", Default: "50"},
		{Name: "lengths", Doc: "steps of each sequence: full; uniform:50%, drawn with that mean (uniform:50%@7: by seed 7); a list such as 2*3+5+9; or a file of one length per line", Default: "full", Words: true},
		{Name: "history", Doc: "steps of the previous minibatch through which training also propagates back; none: new steps only", Zero: "none", Default: "none"},
		{Name: "calls", Doc: "calls of --steps each (default 1), timed one by one with states kept on the device; none: whole sequences", Zero: "none", Default: "none"},
		{Name: "symbols", Doc: "rows of an embedding table, one for each symbol of the input; none: no embedding", Zero: "none", Default: "none"},
		{Name: "embedding", Doc: "input features of each symbol's embedding", Zero: "none", Default: "none"},
		{Name: "groups", Doc: "groups of output classes, each with its own softmax; none: one softmax", Zero: "none", Default: "none"},
		{Name: "heads", Doc: "heads that divide the units of a layer; the recurrent product does not mix them; none: one head", Zero: "none", Default: "none"},
		{Name: "projection", Doc: "size to which a projection narrows each layer's output, below hidden; none: no projection", Zero: "none", Default: "none"},
		{Name: "resets", Doc: "percentage of the time steps at which a sequence begins anew, with states of 0, such as 3%; none: never", Zero: "none", Default: "none"},
		{Name: "weighted", Doc: "loss with a weight for each time step (true or false)", Default: "false", Words: true},
		{Name: "streams", Letter: "S", Doc: "device streams; auto: the technique's own choice", Zero: "auto", Default: "auto"},
	}
}

// DefaultAt is a's default, given the values of the other axes by name. With calls, the default of
// steps is 1.
func (a Axis) DefaultAt(axes map[string]string) string {
	if calls := axes["calls"]; a.Name == "steps" && calls != "" && calls != "none" && calls != "0" {
		return "1"
	}
	return a.Default
}

// AxisNames lists the names of Axes.
func AxisNames() []string {
	var names []string
	for _, a := range Axes() {
		names = append(names, a.Name)
	}
	return names
}

// axisNamed finds an axis by its name.
func axisNamed(name string) (Axis, error) {
	axes := Axes()
	if i := slices.IndexFunc(axes, func(a Axis) bool { return a.Name == name }); i >= 0 {
		return axes[i], nil
	}
	return Axis{}, Unknown("axis", name, AxisNames())
}

// A value is one value of an axis.
type value struct {
	size int
	word string
}

// parse reads values of a and keeps duplicates.
func (a Axis) parse(text string, v Vocabulary) ([]value, error) {
	var list []value
	if !a.Words {
		numbers := text
		if a.Name == "resets" {
			numbers = strings.ReplaceAll(text, "%", "")
		}
		sizes, err := ParseValues(numbers, a.Zero)
		if err != nil && a.Name == "resets" {
			return nil, fmt.Errorf("%q has no percentages: write whole ones such as 3%%, a list such as 1%%,10%%, or %s", text, a.Zero)
		}
		if err != nil {
			return nil, err
		}
		for _, n := range sizes.List() {
			list = append(list, value{size: n})
		}
		return list, nil
	}
	words := a.vocabulary(v)
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if word == "all" && words != nil {
			for _, w := range words {
				list = append(list, value{word: w})
			}
			continue
		}
		word, err := a.read(word, words, v)
		if err != nil {
			return nil, err
		}
		list = append(list, value{word: word})
	}
	return list, nil
}

// read turns a word of a into its form in a point.
func (a Axis) read(word string, words []string, v Vocabulary) (string, error) {
	switch {
	case a.Name != "lengths":
		return word, known(a.Name, word, words)
	case word == "":
		return "", errors.New("lengths are empty: write full, uniform:50% or a file's name")
	case v.Lengths == nil:
		return word, nil
	}
	return v.Lengths(word)
}

// vocabulary lists the words of a; nil: any word.
func (a Axis) vocabulary(v Vocabulary) []string {
	switch a.Name {
	case "cell":
		return v.Cells
	case "pass":
		return v.Passes
	case "precision":
		return v.Precisions
	case "direction":
		return v.Directions
	case "lengths":
		return nil
	}
	return []string{"false", "true"}
}

// set assigns val to p's field of the axis called name.
func set(p *record.Point, name string, val value) {
	switch name {
	case "cell":
		p.Cell = val.word
	case "pass":
		p.Pass = val.word
	case "precision":
		p.Precision = val.word
	case "onehot":
		p.OneHot = val.word == "true"
	case "direction":
		p.Direction = record.DirectionOf(val.word)
	case "lengths":
		p.Lengths = record.SequenceLengthsOf(val.word)
	case "layers":
		p.Layers = val.size
	case "input":
		p.Input = val.size
	case "output":
		p.Output = val.size
	case "hidden":
		p.Hidden = val.size
	case "batch":
		p.Batch = val.size
	case "steps":
		p.Steps = val.size
	case "history":
		p.History = val.size
	case "calls":
		p.Calls = val.size
	case "symbols":
		p.Symbols = val.size
	case "embedding":
		p.Embedding = val.size
	case "groups":
		p.Groups = val.size
	case "heads":
		p.Heads = val.size
	case "projection":
		p.Projection = val.size
	case "resets":
		p.Resets = val.size
	case "weighted":
		p.Weighted = val.word == "true"
	case "streams":
		p.Streams = val.size
	}
}

// word returns the word of p on an axis of words.
func word(p record.Point, name string) string {
	switch name {
	case "cell":
		return p.Cell
	case "pass":
		return p.Pass
	case "precision":
		return p.Precision
	case "direction":
		return p.Direction.String()
	case "lengths":
		return p.Lengths.String()
	case "weighted":
		return fmt.Sprint(p.Weighted)
	}
	return fmt.Sprint(p.OneHot)
}

// CheckAxis returns an error if text is wrong for the axis called name. Without a vocabulary it
// cannot check names.
func CheckAxis(name, text string) error {
	a, err := axisNamed(name)
	if err != nil {
		return err
	}
	_, err = a.parse(text, Vocabulary{})
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
		for _, a := range Axes() {
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
		list, err := a.parse(val, Vocabulary{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if len(list) != 1 || !a.Words && strings.Contains(val, ":") {
			return nil, fmt.Errorf("%s has %d values in a point: write one, or use --%s", key, len(list), name)
		}
		point[name] = val
	}
	return point, nil
}
