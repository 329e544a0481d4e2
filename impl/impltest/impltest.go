// Package impltest is the test suite that every technique passes on every device.
// It checks each cell, pass and knob value against the float64 reference, at sizes
// that do not divide into tiles.
package impltest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

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

// ProblemsOn returns Problems and, for each other precision of device d than fp32, Few, Directed and
// Ragged.
func ProblemsOn(d device.Device) []rnn.Problem {
	problems := Problems()
	for i, name := range rnn.Precisions() {
		if p := rnn.Precision(i); p != rnn.FP32 && slices.Contains(d.Info().Precision, name) {
			problems = append(problems, Few(p)...)
			problems = append(problems, Directed(p)...)
			problems = append(problems, Ragged(p)...)
		}
	}
	return problems
}

// mostWrong is how many problems may be wrong before the others are not run. A wrong technique then
// fails within seconds, instead of once per problem.
const mostWrong = 5

// Run compares technique tech on device d with the reference over problems: every value of every knob, one
// knob at a time, and each setting of extra.
func Run(t *testing.T, d device.Device, tech rnn.Technique, problems []rnn.Problem, extra ...knob.Params) {
	wrong := 0
	for i, p := range problems {
		if wrong == mostWrong {
			t.Fatalf("%d problems are wrong: the other %d are not run", wrong, len(problems)-i)
		}
		if !t.Run(p.String(), func(t *testing.T) {
			data := rnn.NewData(p, 1, 2, "normal")
			want := oracle.Reference(data)
			var declined error
			ran := false
			own := knob.OneAtATime(tech.Knobs(p))
			for i, k := range slices.Concat(own, extra) {
				every := !testing.Short() || i == 0 || i >= len(own)
				if err := check(t, d, tech, p, k, every, data, want); err != nil {
					declined = err
				} else {
					ran = true
				}
			}
			if !ran {
				t.Skip(declined)
			}
		}) {
			wrong++
		}
	}
}

// check runs one setting with every value of the device's knobs, or with their defaults alone. An
// error says why the technique or the device declines it.
func check(t *testing.T, d device.Device, tech rnn.Technique, p rnn.Problem, k knob.Params, every bool, data *rnn.Data, want []oracle.Tensor) error {
	t.Helper()
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
	settings := knob.OneAtATime(d.Knobs(s))
	if !every {
		settings = settings[:1]
	}
	for i, dk := range someSettings(settings, fmt.Sprint(p, k)) {
		dev, err := deviation(d, plan, s, dk, data, want)
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

// mostSettings is the largest number of device settings that are all run without -short. Each may
// compile kernels for each problem anew.
const mostSettings = 16

// someSettings returns all settings up to mostSettings. Otherwise, and with -short, it returns the
// first and two others, or one with -short, chosen by a hash of what runs.
func someSettings(settings []knob.Params, what string) []knob.Params {
	if len(settings) <= 2 || !testing.Short() && len(settings) <= mostSettings {
		return settings
	}
	h := fnv.New32a()
	h.Write([]byte(what))
	others := settings[1:]
	n := uint32(len(others))
	first := h.Sum32() % n
	some := []knob.Params{settings[0], others[first]}
	if !testing.Short() {
		some = append(some, others[(first+n/2)%n])
	}
	return some
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
	if err == nil && !dev.OK() && plan.Cell.Kinked() {
		near, _ := oracle.ReferenceNear(data, first)
		return oracle.Compare(plan.Problem, first, near)
	}
	return dev, err
}

func hasNaN(v []float64) bool {
	return slices.ContainsFunc(v, func(x float64) bool { return x != x })
}
