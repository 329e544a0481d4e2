package devicetest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// positive is the name of matrices that may be divisors.
const positive = "positive"

// fill sets every matrix to random values, and indices to rows of a table of five. If products have
// fewer bits, the values have so few bits that no operand is rounded.
func fill(s *schedule.Schedule, v values, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	for _, m := range s.Matrices {
		shrink := shrink(max(m.Rows, m.Cols))
		for i := range v[m.ID] {
			x := 2*rng.Float64() - 1
			if s.Precision != schedule.FP32 {
				x = math.Round(64*x) / 64
			}
			switch m.Name {
			case "index":
				v[m.ID][i] = float64(rng.IntN(5))
			case transcripts:
				v[m.ID][i] = float64(1 + rng.IntN(4))
				if ended := i%m.Cols > 0 && v[m.ID][i-1] == 0; ended || rng.IntN(m.Cols+1) == 0 {
					v[m.ID][i] = 0
				}
			case positive:
				v[m.ID][i] = 0.5 + math.Abs(float64(float32(x)))
			case weights:
				v[m.ID][i] = float64(float32(x / shrink))
			default:
				v[m.ID][i] = float64(float32(x))
			}
		}
	}
}

// shrink is the power of two next above √n.
func shrink(n int) float64 { return math.Exp2(math.Ceil(math.Log2(float64(n)) / 2)) }

// A wanted is a schedule with random start values and the values that it must compute from them.
type wanted struct {
	*schedule.Schedule
	seed  uint64
	start [][]float32
	want  values
}

// evaluate runs s in double precision.
func evaluate(s *schedule.Schedule, seed uint64) *wanted {
	w := &wanted{Schedule: s, seed: seed, want: newValues(s)}
	fill(s, w.want, seed)
	for _, v := range w.want {
		w.start = append(w.start, make([]float32, len(v)))
		for i, x := range v {
			w.start[len(w.start)-1][i] = float32(x) // exactly
		}
	}
	for _, n := range s.Nodes {
		w.want.eval(n.Op)
	}
	return w
}

// compare runs s on d with each of the settings and compares every matrix with the evaluation,
// including the guard elements around views. It runs each setting so many times, and each run must
// have the same bits.
func compare(t testing.TB, d device.Device, s *schedule.Schedule, seed uint64, settings []knob.Params, runs int) {
	t.Helper()
	evaluate(s, seed).compare(t, d, settings, runs)
}

// compare is like the function compare, after the evaluation.
func (w *wanted) compare(t testing.TB, d device.Device, settings []knob.Params, runs int) {
	t.Helper()
	s, name := w.Schedule, fmt.Sprint(d.Info().Key, " ", d.Info().Libraries["simd"])
	for i, k := range settings {
		prog, err := d.Compile(s, k)
		if errors.Is(err, schedule.ErrUnsupported) {
			if i > 0 {
				continue // the device runs this schedule, but not with this setting
			}
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := checkKernels(prog); err != nil {
			t.Error(err)
		}
		if err := checkPrediction(d, s, k); err != nil {
			t.Errorf("%s, seed %d %v: %v", name, w.seed, k, err)
		}
		if err := w.check(prog, runs); err != nil {
			t.Errorf("%s, seed %d %v: %v; the last operation is %v", name, w.seed, k, err, s.Nodes[len(s.Nodes)-1].Op)
		}
		if err := prog.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// write sets the matrices of prog.
func write(prog device.Program, s *schedule.Schedule, start [][]float32) error {
	for _, m := range s.Matrices {
		if m.Private() {
			continue
		}
		if err := prog.Write(m, start[m.ID]); err != nil {
			return err
		}
	}
	return nil
}

// results runs prog once from start and reads all of its matrices.
func results(prog device.Program, s *schedule.Schedule, start [][]float32) ([][]float32, error) {
	if err := write(prog, s, start); err != nil {
		return nil, err
	}
	if _, err := prog.Run(1); err != nil {
		return nil, err
	}
	all := make([][]float32, len(s.Matrices))
	for i, m := range s.Matrices {
		if m.Private() {
			continue
		}
		all[i] = make([]float32, m.Elements())
		if err := prog.Read(m, all[i]); err != nil {
			return nil, err
		}
		first := make([]float32, m.Cols)
		if err := prog.Read(m, first); err != nil {
			return nil, err
		}
		if !sameBits(first, all[i][:m.Cols]) {
			return nil, fmt.Errorf("matrix %d %s: its first row reads as %v, and with the others as %v", m.ID, m.Name, first, all[i][:m.Cols])
		}
	}
	return all, nil
}

// sameBits compares values, NaNs included.
func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// check runs prog so many times from the start values. It compares the matrices of the first run with the wanted ones,
// and those of the others with the first run's.
func (w *wanted) check(prog device.Program, runs int) error {
	first, err := results(prog, w.Schedule, w.start)
	if err != nil {
		return err
	}
	if err := w.agrees(first); err != nil {
		return err
	}
	for range runs - 1 {
		all, err := results(prog, w.Schedule, w.start)
		if err != nil {
			return err
		}
		for i, m := range w.Matrices {
			if !sameBits(all[i], first[i]) {
				return fmt.Errorf("matrix %d %s differs from run to run", i, m.Name)
			}
		}
	}
	return nil
}

// agrees compares matrices with the wanted ones.
func (w *wanted) agrees(all [][]float32) error {
	s := w.Schedule
	// Rounding: sums of up to 257 products, through a chain of operations
	// that do not amplify. See oracle.Tolerance.
	tolerance := 8 * 0x1p-24 * math.Sqrt(257*float64(min(len(s.Nodes), 16)))
	if s.Precision != schedule.FP32 && slices.ContainsFunc(s.Nodes, func(n schedule.Node) bool { return roundsStates(n.Op) }) {
		tolerance += 8 * s.Precision.Epsilon()
	}
	for _, m := range s.Matrices {
		if m.Private() {
			continue
		}
		got := all[m.ID]
		scale := 1.0
		for _, x := range w.want[m.ID] {
			if !math.IsInf(x, 0) {
				scale = max(scale, math.Abs(x))
			}
		}
		for i, x := range w.want[m.ID] {
			if math.IsInf(x, 0) && float64(got[i]) == x {
				continue
			}
			if diff := math.Abs(float64(got[i]) - x); !(diff <= tolerance*scale) {
				return fmt.Errorf("matrix %d %s[%d,%d] is %v, want %v", m.ID, m.Name, i/m.Cols, i%m.Cols, got[i], x)
			}
		}
	}
	return nil
}

// checkPrediction checks that a device with a cost model predicts a valid time for s. A time of 0
// means unknown.
func checkPrediction(d device.Device, s *schedule.Schedule, k knob.Params) error {
	p, ok := d.(device.Predictor)
	if !ok {
		return nil
	}
	x, err := p.Predict(s, k)
	if err != nil || !(x.Seconds >= 0) || math.IsInf(x.Seconds, 0) {
		return fmt.Errorf("predicted to take %v s: %w", x.Seconds, err)
	}
	return nil
}
