package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/pelletier/go-toml/v2"

	"rnnbench/internal/tomlfile"
)

// file is a graph file. For example, a network whose output is fed back:
//
//	name = "jordan"
//
//	[[layer]]
//	name = "x"
//	size = 20
//	input = "dense"
//
//	[[layer]]
//	name = "h"
//	size = 64
//	activation = "tanh"
//	bias = true
//
//	[[layer]]
//	name = "y"
//	size = 10
//	activation = "softmax"
//
//	[[connection]]
//	from = "x"
//	to = "h"
//
//	[[connection]]
//	from = "h"
//	to = "h"
//	delay = 1
//
//	[[connection]]
//	from = "h"
//	to = "y"
type file struct {
	Name       string
	Layer      []fileLayer
	Connection []fileConnection
}

type fileLayer struct {
	Name, Input, Aggregate, Activation string
	Size                               int
	Bias                               bool
}

type fileConnection struct {
	From, To, Weight string
	Delay            int
}

// Parse reads a graph file and checks the graph.
func Parse(text []byte) (*Graph, error) {
	var f file
	if err := tomlfile.Decode(text, &f); err != nil {
		return nil, explain(err)
	}
	g := &Graph{Name: f.Name}
	if err := printable("network", f.Name); err != nil {
		return nil, err
	}
	index := map[string]int{}
	for k, l := range f.Layer {
		if strings.TrimSpace(l.Name) == "" {
			return nil, fmt.Errorf("graph: layer %d has no name", k+1)
		}
		if err := printable("layer", l.Name); err != nil {
			return nil, err
		}
		if _, twice := index[l.Name]; twice {
			return nil, fmt.Errorf("graph: two layers are called %q", l.Name)
		}
		index[l.Name] = len(g.Layers)
		out := Layer{Name: l.Name, Size: l.Size}
		var err error
		if out.Input, err = choose[Input](l.Name, "input", l.Input, []string{"", "dense", "symbols"}); err != nil {
			return nil, err
		}
		if out.Aggregate, err = choose[Aggregate](l.Name, "aggregate", l.Aggregate, Aggregates()); err != nil {
			return nil, err
		}
		if out.Activation, err = choose[Activation](l.Name, "activation", l.Activation, Activations()); err != nil {
			return nil, err
		}
		if l.Bias {
			out.Bias = []Slot{{Param: fmt.Sprintf("bias %q", l.Name)}}
		}
		g.Layers = append(g.Layers, out)
	}
	for _, c := range f.Connection {
		from, okFrom := index[c.From]
		to, okTo := index[c.To]
		switch {
		case !okFrom:
			return nil, fmt.Errorf("graph: the connection %s → %s begins at unknown layer %q", c.From, c.To, c.From)
		case !okTo:
			return nil, fmt.Errorf("graph: the connection %s → %s ends at unknown layer %q", c.From, c.To, c.To)
		}
		weight, err := choose[Weight](c.From+" → "+c.To, "weight", c.Weight, Weights())
		if err != nil {
			return nil, err
		}
		g.Connections = append(g.Connections, Connection{From: from, To: to, Weight: weight, Delay: c.Delay})
	}
	g.Index()
	g.name()
	return g, g.Check()
}

// printable reports a character in a name that drawings and tables cannot show.
func printable(what, name string) error {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("graph: the name of %s %q has an unprintable character", what, name)
	}
	return nil
}

// explain turns an error of the decoder into a sentence with its place.
func explain(err error) error {
	var unknown tomlfile.UnknownError
	var wrong *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		line, column, path := unknown[0].Line, unknown[0].Column, unknown[0].Key
		key, known, where := path[len(path)-1], []string{"name", "layer", "connection"}, "above the tables"
		switch {
		case len(path) > 1 && path[0] == "layer":
			known, where = []string{"name", "size", "input", "aggregate", "activation", "bias"}, "in [[layer]]"
		case len(path) > 1 && path[0] == "connection":
			known, where = []string{"from", "to", "weight", "delay"}, "in [[connection]]"
		}
		return fmt.Errorf("graph: line %d, column %d: unknown key %q %s: write one of %s", line, column, key, where, strings.Join(known, ", "))
	case errors.As(err, &wrong):
		line, column := wrong.Position()
		text := strings.TrimPrefix(wrong.Error(), "toml: ")
		text, _, _ = strings.Cut(text, " into ") // what follows is for Go programmers
		if path := wrong.Key(); len(path) > 0 && !strings.HasSuffix(text, " is already defined") {
			text = path[len(path)-1] + " has the wrong type: " + text
		}
		return fmt.Errorf("graph: line %d, column %d: %s", line, column, text)
	}
	return fmt.Errorf("graph: %w", err)
}

// choose returns the index of word in words. No word stands for the first.
func choose[T ~uint8](where, key, word string, words []string) (T, error) {
	if word == "" {
		return 0, nil
	}
	i := slices.Index(words, word)
	if i < 0 {
		return 0, fmt.Errorf("graph: %s: %s cannot be %q: write one of %s", where, key, word, strings.Join(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" }), ", "))
	}
	return T(i), nil
}

// name gives every weight, input, output and initial activation its name. Full connections from one
// layer with one delay share a parameter, so that they are one product where their ends lie side by
// side. Names of layers are quoted within these names, so that no two of these are equal, whatever
// layers are called.
func (g *Graph) name() {
	used := map[string]int{}
	for m := range g.Connections {
		c := &g.Connections[m]
		from, to := g.Layers[c.From].Name, g.Layers[c.To]
		switch c.Weight {
		case Full:
			name := fmt.Sprintf("weight %q", from)
			if c.Delay > 0 {
				name += fmt.Sprintf("'%d", c.Delay)
			}
			c.Param = Slot{name, used[name]}
			used[name] += to.Size
		case Diagonal:
			name := fmt.Sprintf("peephole %q → %q", from, to.Name)
			c.Param = Slot{name, used[name]}
			used[name] += to.Size
		}
	}
	for k := range g.Layers {
		l := &g.Layers[k]
		switch {
		case l.Input != Hidden:
			l.Given = fmt.Sprintf("input %q", l.Name)
		case l.Activation == Softmax:
			l.Given = fmt.Sprintf("target %q", l.Name)
		case len(g.OutOf(k)) == 0:
			l.Given = fmt.Sprintf("grad %q", l.Name)
		}
		if g.Delay(k) > 0 {
			l.Initial = fmt.Sprintf("initial %q", l.Name)
		}
	}
}
