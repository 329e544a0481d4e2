package axis

import (
	"fmt"
	"strconv"
	"strings"
)

// A Point is one problem, given by its values on the axes of a sweep. The value "" or 0 of a field that
// was added later is what all records had before.
type Point struct {
	Cell      string `json:"cell"`
	Pass      string `json:"pass"` // "forward" or "train"
	Hidden    int    `json:"hidden"`
	Input     int    `json:"input"`
	Batch     int    `json:"batch"`
	Steps     int    `json:"steps"`
	Streams   int    `json:"streams"` // requested; 0: the technique's own choice
	Layers    int    `json:"layers"`
	Precision string `json:"precision"` // "fp32", "tf32", "bf16", "fp16" or "int8"
	Output    int    `json:"output"`    // classes of the softmax output layer; 0: none
	OneHot    bool   `json:"onehot"`    // each step's input is one of Input symbols
	History   int    `json:"history"`   // steps of the previous minibatch through which training also propagates back
	Calls     int    `json:"calls"`     // runs of Steps each that make a sequence, each timed alone; 0: a run is a whole sequence
	Symbols   int    `json:"symbols"`   // rows of the embedding table; 0: no embedding
	Embedding int    `json:"embedding"` // features of Input that come from the table
	Groups    int    `json:"groups"`    // of the classes, each with its own softmax; 0: one
	Heads     int    `json:"heads"`     // of each layer; the recurrent product does not mix their units; 0: one
	Weighted  bool   `json:"weighted"`  // the loss of each step has a weight

	Transcript int `json:"transcript"` // labels of a sequence's transcript, at most, for the CTC loss; 0: there are no transcripts

	Conv  string `json:"conv"`  // convolutions in front of the recurrent layers, as 32x5x11/2+32x5x11; "": none
	Dense int    `json:"dense"` // units of a fully connected layer in front of the output layer; 0: there is none

	Projection int    `json:"projection"` // size to which a projection narrows each layer's output; 0: no projection
	Skip       int    `json:"skip"`       // layers of a module, whose input is added to its output; 0: there are no modules
	Lookahead  int    `json:"lookahead"`  // steps that a row convolution behind each module reads; 0: there is none
	Norm       string `json:"norm"`       // "layer": products and cell states are normalised; "batch": input products are, over the minibatch; "": nothing is

	Direction Direction       `json:"direction"` // from which end layers read the steps
	Lengths   SequenceLengths `json:"lengths"`   // of the sequences, in steps
	Resets    int             `json:"resets"`    // percentage of the steps at which a sequence begins anew
	Gain      int             `json:"gain"`      // percentage of their usual size that recurrent weights have; 0: 100
	Weights   string          `json:"weights"`   // of a model's layer, MODEL:LAYER@HASH; "": drawn at random
}

// table has a row for each axis, in the order of All.
var table = prepared([]Axis{
	{
		Name: "cell", Help: "recurrent cell, or a FILE.cell of equations", Title: "cell", Default: "lstm", File: ".cell",
		First: true, Needed: true, Always: true, Bare: true, Train: true,
		Network: true,
		field:   func(p *Point) any { return &p.Cell },
	},
	{
		Name: "pass", Help: "pass to run", Title: "pass", Default: "forward", Words: []string{"forward", "train"},
		First: true, Needed: true, Always: true, Bare: true,
		field: func(p *Point) any { return &p.Pass },
	},
	{
		Name: "precision", Help: "precision of the matrix products", Title: "precision", Default: "fp32", Words: []string{"fp32", "tf32", "bf16", "fp16", "int8"},
		First: true, Needed: true, Always: true, Bare: true, Train: true,
		field: func(p *Point) any { return &p.Precision },
		text: func(p *Point) string {
			if p.Precision == "fp32" {
				return ""
			}
			return p.Precision
		},
	},
	{
		Name: "onehot", Help: "one-hot input: one symbol per time step (true or false)", Title: "input encoding", Default: "false",
		First: true, Bare: true,
		Network: true,
		field:   func(p *Point) any { return &p.OneHot },
		place: func(p *Point) string {
			if p.OneHot {
				return "one-hot"
			}
			return "dense"
		},
	},
	{
		Name: "direction", Help: "order in which layers read the steps: forward; reverse; both: both ways side by side; alternate: layers in turns, beginning with reverse",
		Title: "direction", Default: "forward", Words: directions(), Bare: true, Train: true,
		Network: true,
		field:   func(p *Point) any { return &p.Direction },
	},
	{
		Name: "layers", Letter: "L", Help: "stacked layers", Title: "layers", Default: "1", Least: 1,
		First: true, Always: true, Train: true, Near: Octaves, Memory: More,
		Network: true,
		field:   func(p *Point) any { return &p.Layers },
	},
	{
		Name: "input", Letter: "I", Help: "input features; hidden: the hidden size", Title: "input size", Default: "hidden", Zero: "hidden", Least: 1,
		First: true, Near: Share, Memory: More,
		Network: true,
		field:   func(p *Point) any { return &p.Input },
		place: func(p *Point) string { // an input as wide as the hidden layer is no axis that varies
			if p.Input == p.Hidden {
				return "H"
			}
			return strconv.Itoa(p.Input)
		},
	},
	{
		Name: "output", Letter: "O", Help: "classes of the softmax output layer; none: no output layer", Title: "output classes", Default: "none", Zero: "none",
		First: true, Near: Share, Memory: More,
		Network: true,
		field:   func(p *Point) any { return &p.Output },
	},
	{
		Name: "hidden", Letter: "H", Flag: true, Help: "units per layer", Title: "hidden size", Default: "512", Least: 1,
		First: true, Always: true, Train: true, Near: Octaves, Memory: More,
		Network: true,
		field:   func(p *Point) any { return &p.Hidden },
	},
	{
		Name: "batch", Letter: "B", Flag: true, Help: "sequences per batch", Title: "minibatch", Default: "32", Least: 1,
		First: true, Always: true, Train: true, Near: Octaves, Memory: More,
		field: func(p *Point) any { return &p.Batch },
	},
	{
		Name: "steps", Letter: "T", Flag: true, Help: "time steps per sequence", Title: "time steps", Default: "50", Least: 1,
		First: true, Always: true, Train: true, Near: Octaves, Memory: More,
		field: func(p *Point) any { return &p.Steps },
		usual: func(others map[string]string) string { // of a call
			if calls := others["calls"]; calls != "" && calls != "none" && calls != "0" {
				return "1"
			}
			return "50"
		},
	},
	{
		Name: "lengths", Help: "steps of each sequence: full; uniform:50%, drawn with that mean (uniform:50%@7: by seed 7); a list such as 2*3+5+9; or a file of one length per line",
		Title: "mean length, % of the steps", Default: "full", Words: []string{"full", "uniform:50%"}, Open: true, Forms: "full, uniform:50%, 2*3+5+9, FILE", Bare: true,
		field:  func(p *Point) any { return &p.Lengths },
		place:  func(p *Point) string { return p.Lengths.Short() },
		number: func(p *Point) (float64, bool) { return p.Lengths.Mean(p.Steps) },
		text: func(p *Point) string {
			if p.Lengths == "" {
				return ""
			}
			return "lengths=" + p.Lengths.Short()
		},
	},
	{
		Name: "history", Help: "steps of the previous minibatch through which training also propagates back; none: new steps only", Title: "history steps", Default: "none", Zero: "none",
		First: true, Train: true, Memory: More,
		field: func(p *Point) any { return &p.History },
	},
	{
		Name: "calls", Help: "calls of --steps each (default 1), timed one by one with states kept on the device; none: whole sequences", Title: "calls", Default: "none", Zero: "none",
		Near:  Set,
		field: func(p *Point) any { return &p.Calls },
	},
	{
		Name: "symbols", Help: "rows of an embedding table, one for each symbol of the input; none: no embedding", Column: "embedding", Default: "none", Zero: "none",
		Near: Set, Memory: MoreWhereSet,
		Network: true,
		field:   func(p *Point) any { return &p.Symbols },
	},
	{
		Name: "embedding", Help: "input features of each symbol's embedding", Title: "embedding", Column: "embedding", Default: "none", Zero: "none",
		Near:    Set,
		Network: true,
		field:   func(p *Point) any { return &p.Embedding },
		place: func(p *Point) string {
			if p.Symbols == 0 {
				return "none"
			}
			return fmt.Sprintf("%dx%d", p.Symbols, p.Embedding)
		},
	},
	{
		Name: "groups", Help: "groups of output classes, each with its own softmax; none: one softmax", Title: "softmax", Column: "softmax", Default: "none", Zero: "none",
		Network: true,
		field:   func(p *Point) any { return &p.Groups },
		text:    func(p *Point) string { return aboveOne("groups", p.Groups) },
		place: func(p *Point) string {
			text := "one"
			if p.Groups > 1 {
				text = strconv.Itoa(p.Groups)
			}
			if p.Weighted {
				text += " weighted"
			}
			return text
		},
	},
	{
		Name: "transcript", Help: "labels of a sequence's transcript, at most, for the CTC loss, whose blank is class 0; none: no transcripts", Title: "labels of a transcript", Default: "none", Zero: "none",
		Near: Share, Memory: MoreWhereSet,
		Network: true,
		field:   func(p *Point) any { return &p.Transcript },
	},
	{
		Name: "conv", Help: "convolutions over time and features in front of the recurrent layers, each CHANNELSxSTEPSxFEATURES with /STRIDE over features, by a ReLU clipped at 20; none: no convolution", Title: "convolutions", Default: "none",
		Open: true, Words: []string{"none", "32x5x11/2+32x5x11"}, Forms: "none, 32x5x11/2+32x5x11", Train: true,
		Network: true,
		field:   func(p *Point) any { return &p.Conv },
	},
	{
		Name: "dense", Help: "units of a fully connected layer between the recurrent layers and the output layer, by a ReLU clipped at 20; none: no such layer", Title: "units of a fully connected layer", Default: "none", Zero: "none",
		Train: true, Memory: MoreWhereSet,
		Network: true,
		field:   func(p *Point) any { return &p.Dense },
	},
	{
		Name: "heads", Help: "heads that divide the units of a layer; the recurrent product does not mix them; none: one head", Title: "heads", Default: "none", Zero: "none",
		Train: true, Memory: Less,
		Network: true,
		field:   func(p *Point) any { return &p.Heads },
		text:    func(p *Point) string { return aboveOne("heads", p.Heads) },
	},
	{
		Name: "projection", Help: "size to which a projection narrows each layer's output, below hidden; none: no projection", Title: "projected values", Default: "none", Zero: "none",
		Train: true, Memory: MoreWhereSet,
		Network: true,
		field:   func(p *Point) any { return &p.Projection },
	},
	{
		Name: "skip", Help: "layers per shortcut, which adds their input to their output if both are equally wide; none: no shortcuts",
		Title: "layers of a shortcut", Default: "none", Zero: "none",
		Train: true, Memory: MoreWhereSet,
		Network: true,
		field:   func(p *Point) any { return &p.Skip },
	},
	{
		Name: "lookahead", Help: "steps that a row convolution reads, the present one and those after it, behind each module of skip layers or behind all layers; none: no row convolution",
		Title: "steps of a row convolution", Default: "none", Zero: "none",
		Train: true, Memory: MoreWhereSet,
		Network: true,
		field:   func(p *Point) any { return &p.Lookahead },
	},
	{
		Name: "norm", Help: "normalisation inside the layers: none; layer: of the input product, the recurrent product and the cell state, each over all units; batch: of the input product over all steps and sequences", Title: "norm",
		Default: "none", Words: []string{"none", "layer", "batch"}, Train: true,
		Network: true,
		field:   func(p *Point) any { return &p.Norm },
	},
	{
		Name: "resets", Help: "percentage of the time steps at which a sequence begins anew, with states of 0, such as 3%; none: never",
		Title: "resets (% of steps)", Default: "none", Zero: "none", Percent: true, Forms: "whole percentages: 3%, 1%,10%, none",
		field: func(p *Point) any { return &p.Resets },
	},
	{
		Name: "gain", Help: "by what factor recurrent weights are larger than usual, as a percentage such as 400%: R or, in cells without R, weights of units that multiply states; none: 100%",
		Title: "gain of recurrent weights (%)", Default: "none", Zero: "none", Neutral: 100, Percent: true, Train: true, Forms: "whole percentages: 400%, 25%,100%, none",
		field: func(p *Point) any { return &p.Gain },
	},
	{
		Name: "weighted", Help: "loss with a weight for each time step (true or false)", Column: "softmax", Default: "false", Bare: true,
		Network: true,
		field:   func(p *Point) any { return &p.Weighted },
		place: func(p *Point) string {
			if p.Weighted {
				return "weighted"
			}
			return ""
		},
	},
	{
		Name: "weights", Help: "parameters and first states: random, or those of a layer of --model, which sets them", Title: "weights", Default: "random",
		Open: true, Forms: "random, MODEL:LAYER@HASH", Bare: true, Near: Any,
		field: func(p *Point) any { return &p.Weights },
		place: func(p *Point) string {
			if p.Weights == "" {
				return "random"
			}
			name, _, _ := strings.Cut(p.Weights, "@")
			return name
		},
	},
	{
		Name: "streams", Letter: "S", Flag: true, Help: "device streams; auto: the technique's own choice", Title: "streams", Default: "auto", Zero: "auto",
		First: true,
		field: func(p *Point) any { return &p.Streams },
		place: func(p *Point) string { // a number that the technique chooses is a place of its own
			if p.Streams == 0 {
				return "auto"
			}
			return strconv.Itoa(p.Streams)
		},
	},
})

// aboveOne spells a number of parts; 0 stands for 1, which needs no words.
func aboveOne(name string, n int) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf("%s=%d", name, n)
}
