// Package impltest is the test suite that every technique passes on every device.
// It checks each cell, pass and knob value against the float64 reference, at sizes
// that do not divide into tiles.
package impltest

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	"rnnbench/cells"
	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// size is what a suite's problem varies besides cell and pass.
type size struct {
	input, hidden, layers, batch, steps int
	output                              int
	onehot                              bool
	history                             int // only when training
}

// sizes are ones, odd and prime sizes, one past every likely tile, and networks
// with symbols in and classes out.
var sizes = []size{
	{1, 1, 1, 1, 1, 0, false, 0},
	{3, 5, 1, 2, 7, 0, false, 0},
	{7, 17, 2, 1, 9, 0, false, 0},
	{49, 16, 3, 4, 16, 0, false, 0},
	{5, 33, 4, 9, 11, 0, false, 0},
	{65, 97, 2, 17, 3, 0, false, 0},
	{4, 8, 1, 3, 5, 7, false, 0},
	{11, 6, 2, 2, 4, 3, true, 0},
	{1, 3, 1, 1, 2, 1, true, 0},
	{5, 7, 2, 3, 3, 4, false, 5},
	{9, 17, 1, 1, 4, 6, true, 2},
}

// shortSizes are the sizes for -short: two layers, odd sizes, with and without symbols and classes.
var shortSizes = []size{
	{3, 5, 1, 2, 7, 0, false, 0},
	{7, 17, 2, 1, 5, 0, false, 0},
	{11, 6, 2, 2, 3, 3, true, 0},
	{5, 7, 2, 3, 3, 4, false, 2},
}

// Problems returns the suite's problems; with -short fewer sizes, and half of them for inference.
func Problems() []rnn.Problem {
	sizes := sizes
	if testing.Short() {
		sizes = shortSizes
	}
	var ps []rnn.Problem
	for i, c := range cell.All() {
		for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
			for j, s := range sizes {
				if pass != rnn.Train && (s.history > 0 || testing.Short() && (i+j)%2 > 0) {
					continue
				}
				ps = append(ps, rnn.Problem{
					Cell: c, Pass: pass, Input: s.input, Hidden: s.hidden, Layers: s.layers,
					Batch: s.batch, Steps: s.steps, Output: s.output, OneHot: s.onehot, History: s.history,
				})
			}
		}
	}
	ps = append(ps, Embedded(rnn.FP32)...)
	ps = append(ps, Directed(rnn.FP32)...)
	ps = append(ps, Headed(rnn.FP32)...)
	ps = append(ps, Headed(rnn.BF16)...)
	ps = append(ps, Ragged(rnn.FP32)...)
	ps = append(ps, Inner(rnn.FP32)...)
	// fp16 and bf16: some of the same problems, with every cell in both.
	n := len(ps)
	for i, c := range cell.All() {
		for j, precision := range []rnn.Precision{rnn.FP16, rnn.BF16} {
			p := ps[(i*n/len(cell.All())+4*j+1)%n]
			p.Cell, p.Precision = c, precision
			ps = append(ps, p)
		}
	}
	for _, precision := range []rnn.Precision{rnn.FP32, rnn.FP16, rnn.BF16} {
		ps = append(ps, Projected(precision)...)
	}
	return ps
}

// Embedded returns problems in precision p with an embedding, groups of classes and weights of the
// loss, for every cell and pass. With -short it only trains, and only every third cell.
func Embedded(precision rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range cell.All() {
		p := rnn.Problem{
			Cell: c, Input: 7, Hidden: 6, Layers: 2, Batch: 3, Steps: 5,
			Symbols: 5, Embedding: 4, Output: 6, Groups: 2, Weighted: true, Precision: precision,
		}
		if !testing.Short() {
			ps = append(ps, p)
		}
		if p.Pass = rnn.Train; i%3 == 0 || !testing.Short() {
			ps = append(ps, p)
		}
	}
	return ps
}

// Directed returns problems in precision p whose layers read from the last step, in turn or both
// ways: every cell and direction, with each kind of input and output. With -short it returns a third
// of the training problems, and a ninth in precisions other than fp32.
func Directed(precision rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range cell.All() {
		for j, direction := range []rnn.Direction{rnn.BothWays, rnn.FromLast, rnn.Alternating} {
			p := rnn.Problem{
				Cell: c, Input: 3 + 4*j, Hidden: 5 + 2*(i%4), Layers: 1 + (i/3+j)%3, Batch: 1 + (i+2*j)%4, Steps: 4 + j, Direction: direction, Precision: precision,
			}
			switch (i + j/2) % 4 {
			case 1:
				p.Output = 6
			case 2:
				p.Output, p.OneHot = 3, c.Window == 1
			case 3:
				p.Symbols, p.Embedding, p.Output, p.Groups, p.Weighted = 5, 2, 6, 2, true
			}
			if !testing.Short() {
				ps = append(ps, p)
			}
			if p.Pass = rnn.Train; !testing.Short() || i%3 == j && (precision == rnn.FP32 || i/3%3 == int(precision)%3) {
				ps = append(ps, p)
			}
		}
	}
	return ps
}

// Headed returns problems in precision p with heads, for every cell that has a recurrent product.
// With -short, every other cell only trains.
func Headed(precision rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range cell.All() {
		if c.Recurrent == 0 {
			continue
		}
		p := rnn.Problem{Cell: c, Input: 7, Hidden: 15, Heads: 3, Layers: 2, Batch: 3, Steps: 4, Precision: precision}
		if i%2 == 0 || !testing.Short() {
			ps = append(ps, p)
		}
		if p.Pass = rnn.Train; !testing.Short() {
			ps = append(ps, p)
			p.Hidden, p.Heads, p.Batch = 68, 2, 1
			ps = append(ps, p)
			p.Hidden, p.Heads = 6, 6
		}
		ps = append(ps, p)
	}
	return ps
}

// Inner returns problems in precision p for the cells of cells.Inners, with all that layers of them
// may have; with -short half of them.
func Inner(precision rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for _, c := range cells.Inners() {
		plain := rnn.Problem{Cell: c, Input: 7, Hidden: 17, Layers: 2, Batch: 3, Steps: 5, Precision: precision}
		one := rnn.Problem{Cell: c, Input: 3, Hidden: 5, Layers: 1, Batch: 1, Steps: 4, Output: 4, OneHot: true, Precision: precision}
		embedded := plain
		embedded.Symbols, embedded.Embedding, embedded.Output, embedded.Groups, embedded.Weighted = 5, 4, 6, 2, true
		headed, both, ragged, reset, history := plain, plain, plain, plain, one
		headed.Hidden, headed.Heads = 15, 3
		both.Direction, both.Hidden = rnn.BothWays, 9
		ragged.Lengths = "1+3+5"
		reset.Resets = 30
		history.Batch, history.History = 2, 3
		for i, p := range []rnn.Problem{plain, headed, ragged, history, one, embedded, both, reset} {
			if p.History == 0 && (i%2 == 0 || !testing.Short()) {
				ps = append(ps, p)
			}
			if p.Pass = rnn.Train; i%2 == int(precision)%2 || !testing.Short() {
				ps = append(ps, p)
			}
		}
	}
	return ps
}

// Projected returns problems in precision p with a projection, for every cell that can have one, in
// every direction and with lengths; with -short a few.
func Projected(precision rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range cell.All() {
		if !c.Projects() {
			continue
		}
		plain := rnn.Problem{Cell: c, Input: 7, Hidden: 17, Projection: 5, Layers: 3, Batch: 3, Steps: 5, Precision: precision}
		trained := plain
		trained.Pass, trained.Output, trained.OneHot, trained.Hidden, trained.Projection = rnn.Train, 4, i%2 == 0, 12, 11
		both := plain
		both.Pass, both.Direction, both.Layers, both.Projection = rnn.Train, rnn.BothWays, 2, 3
		ended := both
		ended.Lengths = "1+3+5"
		ps = append(ps, plain, trained, both, ended)
		if !testing.Short() {
			one, wide, turn := trained, both, both
			one.Projection, one.Batch, one.OneHot, one.Output = 1, 1, false, 0
			wide.Direction, wide.Hidden, wide.Projection, wide.Batch = rnn.FromFirst, 68, 33, 9
			turn.Direction = rnn.Alternating
			first := trained
			first.Lengths, first.Batch = "2+2*3+5", 4
			ps = append(ps, one, wide, turn, first)
		}
	}
	if testing.Short() && precision != rnn.FP32 {
		return ps[:4]
	}
	return ps
}

// Normal returns problems in precision p whose products are normalised, for every cell that can, with
// all that such layers may have; with -short a third of them.
func Normal(precision rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for _, c := range []*cell.Cell{cell.LSTM.Norm(), cell.GRU, cell.RNNTanh} {
		plain := rnn.Problem{Cell: c, Norm: rnn.NormLayer, Input: 7, Hidden: 17, Layers: 2, Batch: 3, Steps: 5, Precision: precision}
		one, wide, symbols, both, ragged, reset := plain, plain, plain, plain, plain, plain
		one.Batch, one.Layers = 1, 1
		wide.Hidden, wide.Batch, wide.Steps, wide.Layers = 132, 9, 3, 1
		symbols.OneHot, symbols.Output, symbols.Hidden = true, 4, 12
		both.Direction, both.Lengths, both.Hidden = rnn.BothWays, "1+3+5", 9
		ragged.Lengths = "2+2*5"
		reset.Resets = 30
		for _, p := range []rnn.Problem{plain, one, wide, symbols, both, ragged, reset} {
			trained := p
			trained.Pass = rnn.Train
			ps = append(ps, p, trained)
		}
	}
	if !testing.Short() {
		return ps
	}
	var some []rnn.Problem
	for i := int(precision) % 3; i < len(ps); i += 3 {
		some = append(some, ps[i])
	}
	return some
}

// BatchNormal returns problems in precision p whose input products are normalised over the minibatch, with all
// that such layers may have; with -short a sixth of them.
func BatchNormal(precision rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range cell.All() {
		plain := rnn.Problem{Cell: c, Norm: rnn.NormBatch, Input: 7, Hidden: 17, Layers: 2, Batch: 3, Steps: 5, Precision: precision}
		wide, symbols, turned, reset := plain, plain, plain, plain
		wide.Hidden, wide.Batch, wide.Steps = 68, 9, 7
		symbols.OneHot, symbols.Output, symbols.Hidden = c.Window == 1, 4, 12
		turned.Direction, turned.Skip, turned.Layers = rnn.Direction(i%4), 1, 3
		if c.Window == 1 {
			reset.Resets = 30
		}
		for j, p := range []rnn.Problem{plain, wide, symbols, turned, reset} {
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				if p.Pass = pass; !testing.Short() || (i+j+int(precision))%6 == int(pass) {
					ps = append(ps, p)
				}
			}
		}
	}
	return ps
}

// Transcribed returns problems in precision p whose loss is that of CTC, for every cell. Sequences end
// at different steps. With -short it returns a third of those that train.
func Transcribed(precision rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range cell.All() {
		p := rnn.Problem{
			Cell: c, Pass: rnn.Train, Input: 5 + i%3, Hidden: 7 + 2*(i%4), Layers: 1 + i%3, Batch: 1 + i%5, Steps: 3 + 4*(i%4), Output: 2 + 5*(i%3), Transcript: 1 + 3*(i%5),
			Direction: rnn.Direction(i % 5 % 4), Precision: precision,
		}
		switch i % 4 {
		case 1:
			p.OneHot = c.Window == 1
		case 2:
			p.Symbols, p.Embedding = 5, 3
		case 3:
			p.Layers, p.Skip, p.Input = 3, 1, p.Hidden
		}
		forward, kept := p, p
		forward.Pass = rnn.Forward
		kept.Direction, kept.Skip, kept.Batch, kept.Steps, kept.Transcript = rnn.FromFirst, 0, 9, 33, 16
		if !testing.Short() || i%3 == int(precision)%3 {
			ps = append(ps, p)
		}
		if !testing.Short() {
			ps = append(ps, forward, kept)
		}
	}
	return ps
}

// Bypassed returns problems in precision p with shortcuts, for every cell: over the input and without it,
// over one layer and several, with a remainder, in every direction, with all that such layers may have.
// With -short it returns a twelfth of them.
func Bypassed(precision rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range cell.All() {
		plain := rnn.Problem{Cell: c, Skip: 2, Input: 9, Hidden: 9, Layers: 4, Batch: 3, Steps: 5, Precision: precision}
		narrow, one, wide, symbols, embedded, turned, ragged, reset := plain, plain, plain, plain, plain, plain, plain, plain
		narrow.Input, narrow.Layers, narrow.Output = 7, 5, 4
		one.Skip, one.Layers, one.Batch, one.Steps = 1, 3, 1, 1+i%3
		wide.Skip, wide.Layers, wide.Input, wide.Hidden, wide.Batch = 4, 8, 33, 33, 2
		symbols.OneHot, symbols.Output = c.Window == 1, 3
		embedded.Symbols, embedded.Embedding, embedded.Output, embedded.Groups, embedded.Weighted = 5, 4, 6, 2, true
		turned.Direction, turned.Layers = rnn.Direction(1+i%3), 5
		if turned.Direction == rnn.BothWays {
			turned.Input = 18
		}
		ragged.Direction, ragged.Lengths = rnn.Direction((i+1)%4), "1+3+5"
		if reset.Skip = 1; c.Window == 1 {
			reset.Resets = 30
		}
		for j, p := range []rnn.Problem{plain, narrow, one, wide, symbols, embedded, turned, ragged, reset} {
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				if p.Pass = pass; !testing.Short() || (i+j+int(precision))%6 == 0 && int(pass) == j%2 {
					ps = append(ps, p)
				}
			}
		}
		if c.Projects() {
			plain.Pass, plain.Projection, plain.Input = rnn.Train, 5, 5
			ps = append(ps, plain)
		}
	}
	return ps
}

// Ahead returns problems in precision p with row convolutions, for every cell: behind all layers and in modules,
// over fewer steps than there are and over more. With -short it returns a tenth of them.
func Ahead(precision rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range cell.All() {
		plain := rnn.Problem{Cell: c, Lookahead: 3, Input: 7, Hidden: 9, Layers: 2, Batch: 3, Steps: 6, Precision: precision}
		module, long, wide, symbols := plain, plain, plain, plain
		module.Skip, module.Input, module.Layers, module.Norm, module.Output = 2, 9, 5, rnn.NormBatch, 4
		long.Lookahead, long.Skip, long.Batch, long.Steps = 21, 1, 1, 7
		wide.Lookahead, wide.Hidden, wide.Batch, wide.Steps, wide.Layers = 17, 68, 9, 5, 1
		symbols.OneHot, symbols.Output, symbols.Lookahead = c.Window == 1, 3, 1+i%2
		for j, p := range []rnn.Problem{plain, module, long, wide, symbols} {
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				if p.Pass = pass; !testing.Short() || (i+j+int(precision))%5 == 0 && int(pass) == (i+j)%2 {
					ps = append(ps, p)
				}
			}
		}
		if c.Projects() {
			plain.Pass, plain.Projection = rnn.Train, 5
			ps = append(ps, plain)
		}
	}
	return ps
}

// Connected returns problems in precision p with a fully connected layer in front of the output layer, for every
// cell: of one unit and of many, with each loss, behind each kind of network. With -short it returns a seventh.
func Connected(precision rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range cell.All() {
		plain := rnn.Problem{Cell: c, Dense: 1 + 6*(i%4), Input: 7, Hidden: 9, Layers: 2, Batch: 3, Steps: 6, Output: 5, Precision: precision}
		wide, module, turned, grouped, transcribed := plain, plain, plain, plain, plain
		wide.Dense, wide.Hidden, wide.Batch, wide.Steps, wide.Layers, wide.Output = 131, 68, 9, 5, 1, 33
		module.Skip, module.Lookahead, module.Norm, module.Input = 1, 3, rnn.NormBatch, 9
		turned.Direction, turned.Lengths, turned.OneHot = rnn.Direction(1+i%3), "1+3+6", c.Window == 1
		grouped.Output, grouped.Groups, grouped.Weighted, grouped.Symbols, grouped.Embedding = 6, 2, true, 5, 4
		transcribed.Transcript, transcribed.Steps, transcribed.Batch, transcribed.Dense = 4, 11, 2, 17
		for j, p := range []rnn.Problem{plain, wide, module, turned, grouped, transcribed} {
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				if p.Pass = pass; !testing.Short() || (i+j+int(precision))%7 < 2 && int(pass) == (i+j)%2 {
					ps = append(ps, p)
				}
			}
		}
	}
	return ps
}

// Convolved returns problems in precision p with convolutions in front, for every cell: of one channel and of
// several, with strides that leave a rest, and kernels larger than the input. With -short it returns a fifth.
func Convolved(precision rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range cell.All() {
		plain := rnn.Problem{Cell: c, Conv: "5x3x4", Input: 9, Hidden: 9, Layers: 2, Batch: 3, Steps: 6, Precision: precision}
		two, long, turned, speech := plain, plain, plain, plain
		two.Conv, two.Output, two.Dense = "4x2x5/2+3x3x3/2", 5, 7
		long.Conv, long.Steps, long.Skip, long.Layers = "1x9x11+4x2x3", 4, 1, 3
		turned.Direction = rnn.Direction(1 + i%3)
		speech.Input, speech.Batch, speech.Steps, speech.Conv, speech.Output, speech.Transcript, speech.Lookahead = 21, 2, 9, "8x5x7/2", 6, 3, 3
		for j, p := range []rnn.Problem{plain, two, long, turned, speech} {
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				if p.Pass = pass; !testing.Short() || (i+j+int(precision))%5 == 0 && int(pass) == (i+j)%2 {
					ps = append(ps, p)
				}
			}
		}
	}
	return ps
}

// Few returns the problems of shortSizes in precision p. With -short it returns half of them, and
// the other half in the next precision.
func Few(p rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range cell.All() {
		for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
			for j, s := range shortSizes {
				if testing.Short() && (i+j+int(pass)+int(p))%2 > 0 {
					continue
				}
				ps = append(ps, rnn.Problem{
					Cell: c, Pass: pass, Input: s.input, Hidden: s.hidden, Layers: s.layers,
					Batch: s.batch, Steps: s.steps, Output: s.output, OneHot: s.onehot, Precision: p,
				})
			}
		}
	}
	return ps
}

// ProblemsOn returns Problems and, for each other precision of device d than fp32, Few, Directed,
// Ragged and Inner. Of int8 it leaves out training.
func ProblemsOn(d device.Device) []rnn.Problem {
	problems := Problems()
	for i, name := range rnn.Precisions() {
		if p := rnn.Precision(i); p != rnn.FP32 && slices.Contains(d.Info().Precision, name) {
			own := slices.Concat(Few(p), Directed(p), Ragged(p), Inner(p))
			problems = append(problems, slices.DeleteFunc(own, func(q rnn.Problem) bool { return p == rnn.INT8 && q.Pass == rnn.Train })...)
		}
	}
	return problems
}

// mostWrong is how many problems may be wrong before the others are not run. A wrong technique then
// fails within seconds, instead of once per problem.
const mostWrong = 5

// Run compares technique tech on device d with the reference over problems: every value of every knob, one
// knob at a time, and each setting of extra. The technique's defaults run with every setting of the device.
// Each problem runs half of its other settings, with the device's defaults and one other, always another.
func Run(t *testing.T, d device.Device, tech rnn.Technique, problems []rnn.Problem, extra ...knob.Params) {
	run(t, problems, func(t *testing.T, data *rnn.Data, want []oracle.Tensor) error {
		return settings(t, d, tech, data, want, extra)
	})
}

// mostShared is how many settings of a technique, besides its defaults, RunShared runs on several workers.
const mostShared = 3

// RunShared is Run of several techniques on alone, a device of one worker, and then on shared, a device of several.
// extra is by the technique's name. The reference answers a problem once for all techniques.
func RunShared(t *testing.T, alone, shared device.Device, techs []rnn.Technique, problems []rnn.Problem, extra map[string][]knob.Params) {
	run(t, problems, func(t *testing.T, data *rnn.Data, want []oracle.Tensor) error {
		for _, tech := range techs {
			t.Run(tech.Name(), func(t *testing.T) {
				if declined := sharedSettings(t, alone, shared, tech, data, want, extra[tech.Name()]); declined != nil {
					t.Skip(declined)
				}
			})
		}
		return nil
	})
}

// sharedSettings runs a technique for RunShared. Its knobs say what the schedule is, which one worker checks, and the
// device's say how workers share it. So the defaults run on shared with every setting of the device, and of the
// technique's other settings only mostShared, always others, with one setting of the device each. With -short a problem
// runs on shared with either the defaults or one other setting.
func sharedSettings(t *testing.T, alone, shared device.Device, tech rnn.Technique, data *rnn.Data, want []oracle.Tensor, extra []knob.Params) (declined error) {
	t.Helper()
	if declined := settings(t, alone, tech, data, want, extra); declined != nil {
		return declined
	}
	others := slices.Concat(knob.OneAtATime(tech.Knobs(data.Problem))[1:], extra)
	n, chosen := min(mostShared, len(others)), hash(data.Problem.String())
	if testing.Short() {
		n = min(n, chosen%2)
	}
	// What alone declines, shared may decline.
	if n == 0 || !testing.Short() {
		_ = check(t, shared, tech, nil, someSettings, data, want)
	}
	for i := range n {
		_ = check(t, shared, tech, others[(chosen/2+i*len(others)/n)%len(others)], anySetting, data, want)
	}
	return nil
}

// run runs one for each problem, with the reference's answer to its data. An error of one says why nothing was run.
func run(t *testing.T, problems []rnn.Problem, one func(t *testing.T, data *rnn.Data, want []oracle.Tensor) error) {
	wrong := 0
	for i, p := range problems {
		if wrong == mostWrong {
			t.Fatalf("%d problems are wrong: the other %d are not run", wrong, len(problems)-i)
		}
		if !t.Run(p.String(), func(t *testing.T) {
			data := rnn.NewData(p, 1, 2, "normal")
			if declined := one(t, data, oracle.Reference(data)); declined != nil {
				t.Skip(declined)
			}
		}) {
			wrong++
		}
	}
}

// settings runs every value of the technique's knobs and each setting of extra. An error says why all are declined.
func settings(t *testing.T, d device.Device, tech rnn.Technique, data *rnn.Data, want []oracle.Tensor, extra []knob.Params) (declined error) {
	t.Helper()
	ran := false
	own, some := knob.OneAtATime(tech.Knobs(data.Problem)), hash(data.Problem.String())
	for i, k := range slices.Concat(own, extra) {
		if i > 0 && (i+some)%2 > 0 {
			continue
		}
		choose := someSettings
		switch {
		case i == 0:
		case !testing.Short():
			choose = pair
		case i < len(own):
			choose = defaults
		}
		if err := check(t, d, tech, k, choose, data, want); err != nil {
			declined = err
		} else {
			ran = true
		}
	}
	if ran {
		return nil
	}
	return declined
}

// check runs one setting of the technique's knobs with those of the device's that choose returns of all. An error
// says why the technique or the device declines it.
func check(t *testing.T, d device.Device, tech rnn.Technique, k knob.Params, choose func(all []knob.Params, what string) []knob.Params, data *rnn.Data, want []oracle.Tensor) error {
	t.Helper()
	p := data.Problem
	plan, s, err := rnn.Layout(tech, p, k)
	if errors.Is(err, schedule.ErrUnsupported) {
		return fmt.Errorf("%v: %w", k, err)
	}
	if err != nil {
		t.Fatalf("%v: %v", k, err)
	}
	if err := schedule.Verify(s); err != nil {
		t.Fatalf("%v: %v", k, err)
	}
	for i, dk := range choose(knob.OneAtATime(d.Knobs(s)), fmt.Sprint(p, k)) {
		dev, err := deviation(d, plan, s, dk, data, want)
		if errors.Is(err, errUnconverged) {
			return again(t, d, tech, k, choose, data, want)
		}
		if errors.Is(err, schedule.ErrUnsupported) {
			if i > 0 {
				continue // the device runs this schedule, but not with this setting
			}
			return fmt.Errorf("%v %v: %w", k, dk, err)
		}
		if err != nil {
			t.Fatalf("%v %v: %v", k, dk, err)
		}
		if !dev.OK() {
			t.Fatalf("%v %v: %v", k, dk, dev)
		}
	}
	return nil
}

// errUnconverged says that an iterative technique needs more iterations.
var errUnconverged = errors.New("it has not converged")

// again is check with more iterations.
func again(t *testing.T, d device.Device, tech rnn.Technique, k knob.Params, choose func(all []knob.Params, what string) []knob.Params, data *rnn.Data, want []oracle.Tensor) error {
	t.Helper()
	name, fewest, most := tech.(rnn.Iterative).IterationsKnob(data.Problem)
	n := cmp.Or(k[name], fewest)
	if n >= most {
		t.Fatalf("%v: %v", k, errUnconverged)
	}
	more := knob.Params{name: min(2*n, most)}
	for other, v := range k {
		if other != name {
			more[other] = v
		}
	}
	return check(t, d, tech, more, choose, data, want)
}

// mostSettings is the largest number of device settings that are all run without -short. Each may
// compile kernels for each problem anew.
const mostSettings = 16

// someSettings returns all settings up to mostSettings. Otherwise, and with -short, it returns the
// first and two others, or one with -short, chosen by a hash of what runs.
func someSettings(all []knob.Params, what string) []knob.Params {
	if len(all) <= 2 || !testing.Short() && len(all) <= mostSettings {
		return all
	}
	others := all[1:]
	n := len(others)
	first := hash(what) % n
	some := []knob.Params{all[0], others[first]}
	if !testing.Short() {
		some = append(some, others[(first+n/2)%n])
	}
	return some
}

// pair returns the first of all settings and one other, chosen by a hash of what runs.
func pair(all []knob.Params, what string) []knob.Params {
	if len(all) < 2 {
		return all
	}
	return []knob.Params{all[0], all[1+hash(what)%(len(all)-1)]}
}

// defaults returns the first of all settings.
func defaults(all []knob.Params, _ string) []knob.Params { return all[:1] }

// anySetting returns one of all settings, chosen by a hash of what runs.
func anySetting(all []knob.Params, what string) []knob.Params {
	return []knob.Params{all[hash(what)%len(all)]}
}

func hash(what string) int {
	h := fnv.New32a()
	h.Write([]byte(what))
	return int(h.Sum32() >> 1)
}

// deviation runs the schedule three times, so that what one run leaves behind
// would show in the next, and compares.
func deviation(d device.Device, plan *rnn.Plan, s *schedule.Schedule, k knob.Params, data *rnn.Data, want []oracle.Tensor) (oracle.Deviation, error) {
	prog, err := d.Compile(s, k)
	if err != nil {
		return oracle.Deviation{}, err
	}
	defer prog.Close()
	if err := plan.Write(prog, data); err != nil {
		return oracle.Deviation{}, err
	}
	if err := prog.Prepare(); err != nil {
		return oracle.Deviation{}, err
	}
	var first []oracle.Tensor
	for _, n := range []int{1, 2} {
		if _, err := prog.Run(n); err != nil {
			return oracle.Deviation{}, err
		}
		got, err := oracle.Read(plan, prog)
		if err != nil {
			return oracle.Deviation{}, err
		}
		if first == nil {
			first = got
		}
		for i := range got {
			if !slices.Equal(got[i].Values, first[i].Values) && !hasNaN(got[i].Values) {
				return oracle.Deviation{}, fmt.Errorf("%s differs from run to run", got[i].Name)
			}
		}
	}
	dev, err := oracle.Compare(plan.Problem, first, want)
	if err == nil && !dev.OK() && rnn.Kinked(plan.Problem) {
		near, _ := oracle.ReferenceNear(data, first)
		dev, err = oracle.Compare(plan.Problem, first, near)
	}
	if err != nil || dev.OK() {
		return dev, err
	}
	if _, more, err := oracle.Unconverged(plan, prog, dev.Tolerance); more || err != nil {
		return dev, cmp.Or(err, errUnconverged)
	}
	return dev, nil
}

func hasNaN(v []float64) bool {
	return slices.ContainsFunc(v, func(x float64) bool { return x != x })
}
