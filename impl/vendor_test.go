package impl_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"rnnbench/device/devicetest"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// float64Memory is memory in which schedules run in double precision, operation by operation.
type float64Memory [][]float64

func (m float64Memory) Write(to *schedule.Matrix, src []float32) error {
	for i, v := range src {
		m[to.ID][i] = float64(v)
	}
	return nil
}

func (m float64Memory) Read(from *schedule.Matrix, dst []float32) error {
	for i := range dst {
		dst[i] = float32(m[from.ID][i])
	}
	return nil
}

// vendorCells returns the cells that vendors' libraries have.
func vendorCells() []*cell.Cell {
	return []*cell.Cell{cell.RNNTanh, cell.RNNReLU, cell.GRU, cell.LSTM}
}

// plainRun runs a schedule on the data, and returns the answer.
func plainRun(plan *rnn.Plan, s *schedule.Schedule, data *rnn.Data) ([]oracle.Tensor, error) {
	var m float64Memory
	for _, matrix := range s.Matrices {
		m = append(m, make([]float64, matrix.Elements()))
	}
	if err := plan.Write(m, data); err != nil {
		return nil, err
	}
	for op := range s.Operations() {
		devicetest.Evaluate(op, m)
	}
	return oracle.Read(plan, m)
}

// TestVendorsDirections compares the plans of vendors' libraries with the reference, in every
// direction: where each way's parameters and states lie, what is shown of them, and what is flipped
// between stacks. The evaluation of its operations stands in for the library.
func TestVendorsDirections(t *testing.T) {
	var problems []rnn.Problem
	for i, c := range vendorCells() {
		for j, direction := range []rnn.Direction{rnn.BothWays, rnn.FromLast, rnn.Alternating} {
			p := rnn.Problem{Cell: c, Input: 3 + 4*j, Hidden: 5, Layers: 1 + (i+j)%3, Batch: 1 + (i+2*j)%4, Steps: 1 + 3*j, Direction: direction, Pass: rnn.Train}
			second := p
			second.Layers, second.Steps, second.Output = 2, 5, 4
			third := second
			third.Pass, third.Layers, third.Symbols, third.Embedding = rnn.Forward, 3, 5, 2
			problems = append(problems, p, second, third)
		}
	}
	problems = append(problems, slices.DeleteFunc(impltest.Directed(rnn.FP32), func(p rnn.Problem) bool {
		return testing.Short() || !slices.Contains(vendorCells(), p.Cell) || p.OneHot
	})...)
	for _, tech := range impl.Vendors() {
		for _, p := range problems {
			t.Run(fmt.Sprintf("%s/%v", tech.Name(), p), func(t *testing.T) { plainCheck(t, tech, rnn.NewData(p, 1, 2, "normal"), nil) })
		}
	}
}

// plainCheck compares the plan of a vendor's library, evaluated in double precision, with the
// reference for each setting.
func plainCheck(t *testing.T, tech rnn.Technique, data *rnn.Data, settings ...knob.Params) {
	t.Helper()
	want := oracle.Reference(data)
	for _, k := range settings {
		if dev, err := plainDeviation(tech, data, k, want); err != nil || !dev.OK() {
			t.Errorf("%v: %v, %v", k, dev, err)
		}
	}
}

func plainDeviation(tech rnn.Technique, data *rnn.Data, k knob.Params, want []oracle.Tensor) (dev oracle.Deviation, err error) {
	plan, s, err := rnn.Layout(tech, data.Problem, k)
	if err != nil {
		return dev, err
	}
	if err := schedule.Verify(s); err != nil {
		return dev, err
	}
	got, err := plainRun(plan, s, data)
	if err != nil {
		return dev, err
	}
	dev, err = oracle.Compare(data.Problem, got, want)
	if err == nil && !dev.OK() && rnn.Kinked(data.Problem) {
		dev, _, err = oracle.CompareAgain(data, got)
	}
	return dev, err
}

// raggedVendorProblems returns layers of every direction, cell and pass of vendors' libraries, in
// the named precisions. Their sequences have lengths of 1, equal ones and all different ones, or are
// one.
func raggedVendorProblems(precisions []string) (problems []rnn.Problem) {
	for i, name := range rnn.Precisions() {
		if !slices.Contains(precisions, name) {
			continue
		}
		for j, c := range vendorCells() {
			for k := range rnn.Directions() {
				for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
					p := rnn.Problem{
						Cell: c, Pass: pass, Direction: rnn.Direction(k), Precision: rnn.Precision(i),
						Input: 24, Hidden: 64, Layers: 1 + (i+j)%2, Batch: 16, Steps: 9, Lengths: rnn.Lengths(fmt.Sprintf("uniform:50%%@%d", 2+j)),
					}
					odd := p
					odd.Input, odd.Hidden, odd.Layers, odd.Output = 7, 33, 3, 4
					odd.Batch, odd.Steps, odd.Lengths = 8, 6, []rnn.Lengths{"1+2+2*4+5+3*6", "4*1+4+5+2*6", "8*6"}[(j+k)%3]
					problems = append(problems, p, odd)
				}
			}
		}
	}
	single := rnn.Problem{Cell: cell.GRU, Pass: rnn.Train, Direction: rnn.BothWays, Input: 3, Hidden: 8, Layers: 2, Batch: 1, Steps: 4, Lengths: "4"}
	first := rnn.Problem{Cell: cell.LSTM, Pass: rnn.Train, Input: 3, Hidden: 8, Layers: 1, Batch: 3, Steps: 1, Lengths: "3*1", Output: 3, Weighted: true}
	return append(problems, single, first)
}

// TestVendorsLengths compares the plans of vendors' libraries with the reference where sequences
// have lengths of their own. The rows of a step begin with the longest sequence. Last states are
// those of each sequence's own last step.
func TestVendorsLengths(t *testing.T) {
	problems := raggedVendorProblems([]string{"fp32"})
	if !testing.Short() {
		for _, p := range impltest.Ragged(rnn.FP32) {
			if slices.Contains(vendorCells(), p.Cell) && !p.OneHot && p.Heads < 2 {
				problems = append(problems, p)
			}
		}
	}
	for _, tech := range impl.Vendors() {
		for i, p := range problems {
			switch { // in double precision, nothing depends on the number of units
			case testing.Short() && p.Hidden == 64 && i%4 > 0:
				continue
			case testing.Short() && p.Hidden == 64:
				p.Hidden, p.Input = 10, 6
			case testing.Short() && p.Hidden == 33:
				p.Hidden = 9
			}
			settings := []knob.Params{nil, padded}
			if p.Symbols > 0 && p.Pass == rnn.Train {
				settings = settings[:1]
			}
			t.Run(fmt.Sprintf("%s/%v", tech.Name(), p), func(t *testing.T) { plainCheck(t, tech, rnn.NewData(p, 1, 2, "normal"), settings...) })
		}
	}
	p := rnn.Problem{Cell: cell.LSTM, Hidden: 4, Layers: 1, Batch: 2, Steps: 5, Lengths: "3+5", Symbols: 3, Embedding: 2, Input: 2, Output: 3, Pass: rnn.Train}
	if _, _, err := rnn.Layout(impl.Lookup("cudnn"), p, padded); !errors.Is(err, schedule.ErrKnob) {
		t.Errorf("an embedding's gradient of padding: %v", err)
	}
}

// padded gives every step rows of all sequences.
var padded = knob.Params{"batchsizes": 1}

// TestVendorsLengthsCalls: sequences with lengths of their own take one library call for each pass.
// It passes the lengths, longest first, and has as many rows as the sequences have steps.
func TestVendorsLengthsCalls(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 2, Batch: 4, Steps: 6, Pass: rnn.Train, Lengths: "1+3+5+6", Direction: rnn.BothWays}
	_, s, err := rnn.Layout(impl.Lookup("cudnn"), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for op := range s.Operations() {
		var stack schedule.Stack
		switch op := op.(type) {
		case schedule.Vendor:
			stack = op.Stack
		case schedule.VendorBackward:
			stack = op.Stack
		default:
			t.Errorf("%v: it is not the library's", op)
			continue
		}
		calls++
		if !slices.Equal(stack.Lengths, []int{6, 5, 3, 1}) || stack.X.Rows != 15 || stack.Batch() != 4 {
			t.Errorf("%v: lengths %v of %d sequences in %d rows, want 6, 5, 3 and 1 in 15", op, stack.Lengths, stack.Batch(), stack.X.Rows)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls of the library, want one for each pass", calls)
	}
}

// TestVendorsCalls: layers both ways are one library call. Layers that read from the last step take
// a call for each stack that reads one way.
func TestVendorsCalls(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 3, Batch: 2, Steps: 5, Pass: rnn.Train}
	for _, c := range []struct {
		direction      rnn.Direction
		calls, flipped int // of one pass; look-ups of both
	}{{rnn.FromFirst, 1, 0}, {rnn.BothWays, 1, 0}, {rnn.FromLast, 1, 4}, {rnn.Alternating, 3, 8}} {
		p.Direction = c.direction
		_, s, err := rnn.Layout(impl.Lookup("cudnn"), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		forward, backward, flipped := 0, 0, 0
		for op := range s.Operations() {
			switch op := op.(type) {
			case schedule.Vendor:
				forward++
				if op.Both != (c.direction == rnn.BothWays) {
					t.Errorf("%v: %v", c.direction, op)
				}
			case schedule.VendorBackward:
				backward++
			case schedule.Gather:
				flipped++
			}
		}
		if forward != c.calls || backward != c.calls || flipped != c.flipped {
			t.Errorf("%v: %d calls forward, %d backward and %d flips, want %d, %d and %d", c.direction, forward, backward, flipped, c.calls, c.calls, c.flipped)
		}
	}
}

// TestVendorsDeclineDirections: what a library cannot do is declined the same way in every direction.
func TestVendorsDeclineDirections(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 4, Hidden: 4, Layers: 2, Batch: 2, Steps: 5}
	for _, direction := range []rnn.Direction{rnn.FromFirst, rnn.BothWays, rnn.FromLast, rnn.Alternating} {
		p.Direction = direction
		other, heads, symbols := p, p, p
		other.Cell, heads.Heads, symbols.OneHot = cell.SLSTM, 2, true
		for _, c := range []struct {
			p  rnn.Problem
			is error
		}{{other, schedule.ErrCell}, {heads, schedule.ErrHeads}, {symbols, schedule.ErrInput}} {
			if _, _, err := rnn.Layout(impl.Lookup("cudnn"), c.p, nil); !errors.Is(err, c.is) {
				t.Errorf("%v: %v, want %v", c.p, err, c.is)
			}
		}
	}
}

// TestVendorsFirstStates: FirstStates and FirstRows cover all states before the first step.
func TestVendorsFirstStates(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 4, Hidden: 4, Layers: 3, Batch: 2, Steps: 5}
	for _, direction := range []rnn.Direction{rnn.FromFirst, rnn.BothWays, rnn.FromLast, rnn.Alternating} {
		p.Direction = direction
		for _, name := range []string{"cudnn", "naive"} {
			plan, _, err := rnn.Layout(impl.Lookup(name), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for _, m := range plan.FirstStates() {
				rows += rnn.FirstRows(plan, m)
			}
			if want := len(p.Cell.States) * p.Reads() * p.Batch; rows != want {
				t.Errorf("%s, %v: %d rows of first states, want %d", name, direction, rows, want)
			}
		}
	}
}

// oneAlgorithm is a technique limited to one algorithm of the vendor's library.
type oneAlgorithm struct {
	rnn.Technique
	algorithm int
}

func (b oneAlgorithm) Knobs(p rnn.Problem) []knob.Knob {
	knobs := b.Technique.Knobs(p)
	knobs[0].Values = []int{b.algorithm}
	return knobs
}

// Directs implements rnn.Director.
func (b oneAlgorithm) Directs(d rnn.Direction) bool { return b.Technique.(rnn.Director).Directs(d) }

// LongestFirst implements rnn.LongestFirst.
func (b oneAlgorithm) LongestFirst() { b.Technique.(rnn.LongestFirst).LongestFirst() }

// TestGPUVendorDirections runs the vendor's library on a GPU, in every direction, algorithm and
// precision. RNNBENCH_CUDA names the worker. What an algorithm declines is skipped with the
// library's own status.
func TestGPUVendorDirections(t *testing.T) { runVendorOnGPU(t, vendorProblems) }

// TestGPUVendorLengths runs it where sequences have lengths of their own, in every direction, by each of its algorithms.
func TestGPUVendorLengths(t *testing.T) { runVendorOnGPU(t, raggedVendorProblems) }

func runVendorOnGPU(t *testing.T, of func(precisions []string) []rnn.Problem) {
	path := os.Getenv("RNNBENCH_CUDA")
	if path == "" {
		t.Skip("RNNBENCH_CUDA does not name the worker")
	}
	d := openGPU(t, path)
	tech := impl.Lookup("cudnn")
	for _, algorithm := range tech.Knobs(rnn.Problem{})[0].Values {
		t.Run(fmt.Sprintf("algorithm=%d", algorithm), func(t *testing.T) {
			problems := of(d.Info().Precision)
			if algorithm == staticSmall {
				problems = slices.DeleteFunc(problems, wrongByVendor)
			}
			impltest.Run(t, d, oneAlgorithm{tech, algorithm}, problems)
		})
	}
}

// staticSmall is the vendor's algorithm for small layers.
const staticSmall = 3

// wrongByVendor reports whether this algorithm gets p wrong: with cuDNN 9.14 on an H100, the
// gradient of the input is off by a quarter of its largest value. A sweep records such a point as
// incorrect.
func wrongByVendor(p rnn.Problem) bool {
	return p.Precision == rnn.FP16 && p.Direction == rnn.BothWays && p.Pass == rnn.Train && len(p.Cell.Gates) == 1
}

// vendorProblems returns layers of every direction, cell and pass of vendors' libraries, in the
// named precisions.
func vendorProblems(precisions []string) (problems []rnn.Problem) {
	for i, name := range rnn.Precisions() {
		if !slices.Contains(precisions, name) {
			continue
		}
		for j, c := range vendorCells() {
			for _, direction := range []rnn.Direction{rnn.BothWays, rnn.FromLast, rnn.Alternating} {
				for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
					p := rnn.Problem{
						Cell: c, Pass: pass, Direction: direction, Precision: rnn.Precision(i),
						Input: 24, Hidden: 64, Layers: 1 + (i+j)%2, Batch: 16, Steps: 9,
					}
					odd := p
					odd.Input, odd.Hidden, odd.Layers, odd.Batch, odd.Steps, odd.Output = 7, 33, 3, 3, 5, 4
					problems = append(problems, p, odd)
				}
			}
		}
	}
	return problems
}

// TestEmulatedVendors runs some of these problems on the emulated GPU. One algorithm of its library
// declines both ways and lengths, another declines odd numbers of units.
func TestEmulatedVendors(t *testing.T) {
	runVendorEmulated(t, vendorProblems([]string{"fp32", "bf16"}))
}

// TestEmulatedVendorLengths does so where sequences have lengths of their own.
func TestEmulatedVendorLengths(t *testing.T) {
	runVendorEmulated(t, raggedVendorProblems([]string{"fp32", "bf16"}))
}

func runVendorEmulated(t *testing.T, problems []rnn.Problem) {
	d := emulated(t)
	tech := impl.Lookup("cudnn")
	for algorithm := range 3 {
		var some []rnn.Problem
		for i := algorithm; i < len(problems); i += 7 {
			some = append(some, problems[i])
		}
		t.Run(fmt.Sprintf("algorithm=%d", algorithm), func(t *testing.T) { impltest.Run(t, d, oneAlgorithm{tech, algorithm}, some) })
	}
}

// TestEmulatedVendorTraining trains by the emulated GPU's library, in every direction.
func TestEmulatedVendorTraining(t *testing.T) {
	impltest.RunTraining(t, emulated(t), impl.Lookup("cudnn"))
}
