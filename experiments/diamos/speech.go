package diamos

import (
	"math"
	"sync"

	"rnnbench/cells"
	"rnnbench/experiments/form"
	"rnnbench/experiments/study"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// Speech is the experiment diamos-speech. Before it had whole networks, it measured stacks of recurrent
// layers alone.
var Speech = study.Experiment{
	ID: "diamos-speech", Title: "Very deep speech models: throughput and parameters, without word error rates",
	Source: "Diamos et al. 2016, Figure 7 and Tables 1, 2 and 3",
	Unlike: "speed alone, since the data are private; diamos-depth trains such networks on generated speech; a row convolution ends each module, where the paper has ten in all; convolutions read each step; sizes that the paper does not print are those of Deep Speech 2; records of an earlier program are of the recurrent layers alone",
	Parts:  speechParts, Earlier: stackParts,
	Report: reportSpeech,
}

// A network is a row of Table 1, 2 or 3. All have the architecture of Figure 7: two convolutions, modules of
// recurrent layers that end in a row convolution, each with a shortcut, and a fully connected layer. That layer
// gives the characters here: the parameters that the paper prints leave no room for another.
type network struct {
	table, layers, hidden int
	skip                  int     // layers that a shortcut spans; 0: there is none
	wer                   float64 // word error rate that the paper prints
	millions              float64 // of parameters, as the paper prints them; 0: it does not
}

// networks returns the rows of all tables. Table 2 keeps the number of parameters, Table 3 that of a layer,
// from which its units follow: 2·1152² are 2.65 million.
func networks() []network {
	var all []network
	for skip, wer := range skips() {
		all = append(all, network{1, 48, 1152, skip, wer, 0})
	}
	return append(all,
		network{2, 8, 1632, 4, 33.61, 0}, network{2, 24, 928, 4, 31.99, 0}, network{2, 40, 704, 4, 31.64, 0},
		network{2, 56, 608, 4, 30.67, 0}, network{2, 72, 544, 4, 33.35, 0}, network{2, 88, 480, 4, 42.67, 0},
		network{3, 8, 1152, 4, 35.69, 22}, network{3, 24, 1152, 4, 31.32, 65}, network{3, 40, 1152, 4, 28.90, 107},
		network{3, 56, 1152, 4, 28.12, 149}, network{3, 72, 1152, 4, 27.84, 192}, network{3, 88, 1152, 4, 27.23, 234})
}

// skips returns the word error rates of Table 1, of 48 layers of 1152 units. The index is the number
// of layers that each skip connection spans; 0: there is none.
func skips() []float64 { return []float64{100, 38.77, 33.28, 30.32, 29.40, 29.82, 30.04, 29.87, 27.44} }

// figure7 reports whether n is the network of Figures 5 and 8, whose layers Figure 7 counts.
func (n network) figure7() bool { return n.table == 1 && n.skip == 4 }

// What all networks share. The paper prints the steps of its average utterance, 350, which are 20 ms long,
// and that outputs know 800 ms of the future. Deep Speech 2 (Amodei et al. 2015), which the networks are
// said to be almost identical to, has these convolutions of spectrograms of 161 bands, and 29 characters.
const (
	frames     = 350
	future     = 40 // steps
	bands      = 161
	characters = 29
	convolved  = "32x11x41/2+32x11x21/2"
	spoken     = 100 // labels of a transcript
)

// The quick size has an eighth of the units, fewer steps and narrower convolutions.
const (
	quickShare     = 8
	quickFrames    = 20
	quickBands     = 40
	quickConvolved = "4x3x11/2+4x3x5/2"
	quickSpoken    = 6
)

// clipped registers the recurrent unit of Deep Speech, and returns its name.
var clipped = sync.OnceValue(func() string {
	c, err := cells.Load("rnn-crelu")
	if err != nil {
		panic(err) // it is embedded
	}
	return c.Name
})

// lookahead is how many steps each row convolution reads, so that all together read those of the future.
func (n network) lookahead() int {
	ends := 1
	if n.skip > 0 {
		ends = n.layers / n.skip
	}
	return 1 + int(math.Round(future/float64(ends)))
}

// point is a pass of the whole network on so many utterances.
func (n network) point(size study.Size, pass string, batch int) record.Point {
	p := record.Point{Cell: clipped(), Pass: pass, Input: bands, Conv: convolved, Hidden: n.hidden, Layers: n.layers, Batch: batch, Steps: frames, Precision: "fp32",
		Skip: n.skip, Lookahead: n.lookahead(), Norm: "batch", Output: characters, Transcript: spoken}
	if size == study.Quick {
		p.Hidden /= quickShare
		p.Input, p.Conv, p.Steps, p.Transcript = quickBands, quickConvolved, quickFrames, quickSpoken
		p.Lookahead = min(p.Lookahead, quickFrames)
	}
	return p
}

// raw is point without batch normalisation, with units that cuDNN has.
func (n network) raw(size study.Size, pass string, batch int) record.Point {
	p := n.point(size, pass, batch)
	p.Cell, p.Norm = "rnn-relu", ""
	return p
}

// stack is the training of the recurrent layers alone.
func (n network) stack(size study.Size) record.Point {
	p := record.Point{Cell: "rnn-relu", Pass: "train", Hidden: n.hidden, Layers: n.layers, Batch: least, Steps: frames, Precision: "fp32"}
	if size == study.Quick {
		p.Hidden, p.Steps = n.hidden/quickShare, quickFrames
	}
	p.Input = p.Hidden
	return p
}

// measured reports whether a network is measured: of Table 1 few, since the span hardly changes the work.
func (n network) measured(size study.Size) bool {
	switch {
	case n.table == 1:
		return n.skip == 1 || n.figure7()
	case size == study.Quick:
		return n.layers == 8 || n.layers == 24 || n.layers == 88
	}
	return true
}

// least is the minibatch that makes the paper's kernels efficient. All networks are measured at it.
const least = 4

// swept reports whether n is measured over the minibatch. It is a shallow one: of deeper ones the check of many
// sequences, which all are normalised together, takes minutes.
func (n network) swept() bool { return n.table == 3 && n.layers == 8 }

// more are the minibatches of such a network besides.
func more(size study.Size) []int {
	if size == study.Quick {
		return []int{16}
	}
	return []int{8, 16, 32, 64}
}

// speechParts plans the training of all networks, and both passes of some.
func speechParts(size study.Size, on study.Target) []study.Part {
	var train, forward, batches, bare []record.Point
	for _, n := range networks() {
		if !n.measured(size) {
			continue
		}
		train = append(train, n.point(size, "train", least))
		if n.figure7() || n.table == 3 && (n.layers == 8 || n.layers == 40 || n.layers == 88) {
			forward = append(forward, n.point(size, "forward", least))
		}
		if n.table == 3 && n.layers == 24 {
			bare = append(bare, n.raw(size, "train", least))
		}
		if n.swept() {
			for _, b := range more(size) {
				batches = append(batches, n.point(size, "train", b), n.point(size, "forward", b))
			}
		}
	}
	specs := speechSpecs(on)
	parts := []study.Part{{Points: train, Specs: specs}, {Points: forward, Specs: specs}, {Points: batches, Specs: specs}}
	if on.GPU {
		parts = append(parts, study.Part{Points: bare, Specs: append(specs, form.GridForms(size)...)})
	}
	return parts
}

// speechSpecs are products and persistent kernels. A GPU replays both as graphs: so neither waits for the host,
// which starts thousands of small operations besides the recurrent layers.
func speechSpecs(on study.Target) []grid.Spec {
	specs := append([]grid.Spec{form.GemmSpec("cudnnstyle", 1)}, persistentSpecs()...)
	if on.GPU {
		for i, s := range specs {
			specs[i] = study.Graphed(s.Label+", graph", s)
		}
	}
	return specs
}

// stackParts lists what an earlier program measured: stacks of recurrent layers alone.
func stackParts(size study.Size, on study.Target) []study.Part {
	var list []record.Point
	for _, n := range networks() {
		if n.table > 1 {
			list = append(list, n.stack(size))
		}
	}
	ladder := form.Ladder(1)
	specs := []grid.Spec{study.Spec("naive", "naive", nil), study.Spec("cudnnstyle", "cudnnstyle", ladder[len(ladder)-2].Knobs)}
	return []study.Part{{Points: list, Specs: on.WithGPU(append(specs, persistentSpecs()...), append([]grid.Spec{study.Graphed("cudnnstyle, graph", specs[1])}, form.GridForms(size)...)...)}}
}

// rowOf is the network that p is of, at either size. ok is false if it is none.
func rowOf(p record.Point) (n network, ok bool) {
	for _, n := range networks() {
		alone := !whole(p) && n.table > 1
		if n.layers == p.Layers && (n.hidden == p.Hidden || n.hidden/quickShare == p.Hidden) && (alone || whole(p) && n.skip == p.Skip) {
			return n, true
		}
	}
	return network{}, false
}

// whole reports whether p has all that a speech model has, not the recurrent layers alone.
func whole(p record.Point) bool { return p.Conv != "" }
