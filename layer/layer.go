package layer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rnnbench/cells"
	"rnnbench/internal/nearest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
)

// A Layer is a stack of recurrent layers without a shape: any number of sequences and steps.
type Layer struct {
	device     *Device
	problem    rnn.Problem // without shape and pass
	batchFirst bool
	plans      []*Plan
	closed     bool
}

// mostText bounds descriptions.
const mostText = 1 << 16

// NewLayer makes a layer from a description: key=value pairs with commas between, as the header
// rnnbench.h lists them.
func (d *Device) NewLayer(description string) (*Layer, error) {
	leave, err := d.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	l, err := parse(description)
	if err != nil {
		return nil, err
	}
	l.device = d
	d.layers = append(d.layers, l)
	return l, nil
}

// parse reads a description.
func parse(description string) (*Layer, error) {
	if len(description) > mostText {
		return nil, invalid("the description has %d characters: at most %d are allowed", len(description), mostText)
	}
	l := &Layer{problem: rnn.Problem{Cell: cell.LSTM, Layers: 1, Batch: 1, Steps: 1}}
	p := &l.problem
	words := map[string][]string{"direction": {"forward", "reverse", "both"}, "precision": rnn.Precisions(), "batchfirst": {"0", "1"}}
	numbers := map[string]*int{"input": &p.Input, "hidden": &p.Hidden, "layers": &p.Layers, "projection": &p.Projection, "heads": &p.Heads}
	keys := []string{"cell", "input", "hidden", "layers", "direction", "projection", "heads", "precision", "batchfirst"}
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(description, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		switch {
		case !ok:
			return nil, invalid("the description has %.80q: write key=value pairs with commas between", pair)
		case !slices.Contains(keys, key):
			return nil, invalid("%w", nearest.Unknown("key", key, keys))
		case seen[key]:
			return nil, invalid("the description says %s twice", key)
		}
		seen[key] = true
		switch {
		case key == "cell":
			c, err := cellOf(value)
			if err != nil {
				return nil, invalid("%w", err)
			}
			p.Cell = c
		case numbers[key] != nil:
			n, err := strconv.Atoi(value)
			if err != nil {
				return nil, invalid("%s is %.40q: write a whole number", key, value)
			}
			*numbers[key] = n
		default:
			i := slices.Index(words[key], value)
			if i < 0 {
				return nil, invalid("%w", nearest.Unknown(key, value, words[key]))
			}
			switch key {
			case "direction":
				p.Direction = rnn.Direction(i)
			case "precision":
				p.Precision = rnn.Precision(i)
			case "batchfirst":
				l.batchFirst = i == 1
			}
		}
	}
	if err := p.Check(); err != nil {
		return nil, invalid("%w", err)
	}
	return l, nil
}

// cellOf returns the cell of that name, or that a file describes.
func cellOf(name string) (*cell.Cell, error) {
	if strings.HasSuffix(name, ".cell") {
		return equations.Load(name)
	}
	if c := cell.Lookup(name); c != nil {
		return c, nil
	}
	if c, err := cells.Load(name); err == nil {
		return c, nil
	}
	var names []string
	for _, c := range cell.All() {
		names = append(names, c.Name)
	}
	return nil, nearest.Unknown("cell", name, append(names, cells.Names()...))
}

// enter begins a call.
func (l *Layer) enter() (leave func(), err error) {
	if leave, err = l.device.enter(); err != nil {
		return nil, err
	}
	if l.closed {
		leave()
		return nil, invalid("the layer is closed")
	}
	return leave, nil
}

// Describe returns the layer as JSON.
func (l *Layer) Describe() (string, error) {
	leave, err := l.enter()
	if err != nil {
		return "", err
	}
	defer leave()
	p := l.problem
	return text(struct {
		Cell       string   `json:"cell"`
		Gates      []string `json:"gates"`
		States     []string `json:"states"`
		Input      int      `json:"input"`
		Hidden     int      `json:"hidden"`
		Layers     int      `json:"layers"`
		Direction  string   `json:"direction"`
		Projection int      `json:"projection,omitempty"`
		Heads      int      `json:"heads,omitempty"`
		Precision  string   `json:"precision"`
		BatchFirst bool     `json:"batchfirst"`
		Plans      int      `json:"plans"`
	}{p.Cell.Name, p.Cell.Gates, p.Cell.States, p.Input, p.Hidden, p.Layers, p.Direction.String(), p.Projection, p.Heads, p.Precision.String(), l.batchFirst, len(l.plans)})
}

// Close closes the layer with its plans. Closing it again does nothing.
func (l *Layer) Close() error {
	leave, err := l.enter()
	if err != nil {
		return nil
	}
	defer leave()
	l.device.forget(l)
	return l.close()
}

func (l *Layer) close() error {
	l.closed = true
	var failed error
	for _, p := range l.plans {
		failed = errors.Join(failed, p.close())
	}
	l.plans = nil
	return failed
}

// A Request asks for a plan.
type Request struct {
	Batch, Steps int
	Pass         string // "forward" or "train"
	Technique    string // "auto", "race", or one with its settings
	Lengths      []int  // of the sequences; nil: all have all steps
}

// key identifies equal requests.
func (r Request) key() string {
	return fmt.Sprint(r.Batch, r.Steps, r.Pass, r.Technique, r.Lengths)
}

// shaped returns l's problem in the shape of r.
func (l *Layer) shaped(r Request) (rnn.Problem, error) {
	p := l.problem
	p.Batch, p.Steps = r.Batch, r.Steps
	pass := slices.Index(rnn.Passes(), r.Pass)
	if pass < 0 {
		return p, invalid("%w", nearest.Unknown("pass", r.Pass, rnn.Passes()))
	}
	p.Pass = rnn.Pass(pass)
	if err := p.Check(); err != nil {
		return p, invalid("%w", err)
	}
	if r.Lengths == nil {
		return p, nil
	}
	if len(r.Lengths) != r.Batch {
		return p, invalid("there are %d lengths, but the batch has %d sequences", len(r.Lengths), r.Batch)
	}
	longest := 0
	for j, n := range r.Lengths {
		if n < 1 || n > r.Steps {
			return p, invalid("sequence %d has %d steps: it must have at least 1, and at most %d", j, n, r.Steps)
		}
		longest = max(longest, n)
	}
	if longest < r.Steps {
		return p, invalid("the longest sequence has %d steps, not %d: plan as many steps as it has", longest, r.Steps)
	}
	if slices.Min(r.Lengths) < r.Steps {
		p.Lengths = rnn.LengthsOf(r.Lengths)
	}
	if err := p.Check(); err != nil {
		return p, invalid("%w", err)
	}
	return p, nil
}
