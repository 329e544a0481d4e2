package cuda_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/devicetest"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// An updating builds a schedule of updates.
type updating struct {
	*schedule.Builder
	rates, squares schedule.View
	nesterov       bool // of all updates
}

// newUpdating has rates between 0 and 1, and the norm of 150 gradients or none.
func newUpdating(norm bool) *updating {
	u := &updating{Builder: schedule.NewBuilder(2)}
	u.rates = u.Matrix("rates", 1, schedule.RateColumns).All()
	u.Do(0, schedule.Map{Op: cell.Sigmoid, Out: u.rates, A: u.rates})
	if norm {
		u.squares = u.Matrix("squares", 1, 300).All()
		u.Do(0, schedule.Map{Op: cell.Mul, Out: u.squares, A: u.squares, B: u.squares})
	}
	return u
}

// place returns a matrix, or a part of one that has gaps or is not aligned.
func (u *updating) place(name string, rows, cols int, gaps bool) schedule.View {
	if gaps {
		return u.Matrix(name, rows+1, cols+3).All().Band(1, rows).Columns(2, cols)
	}
	return u.Matrix(name, rows, cols).All()
}

// grow adds an update of parameter i, whose gradient another stream forms.
func (u *updating) grow(i, rows, cols, moments int, rule schedule.Rule, gaps, copied bool) {
	name := func(what string) string { return fmt.Sprint(what, i) }
	op := schedule.Update{
		Rule: rule, Param: u.place(name("param"), rows, cols, false), Grad: u.place(name("grad"), rows, cols, gaps),
		Rates: u.rates, Squares: u.squares, Beta1: 0.75, Beta2: 0.9, Epsilon: 0.125, Nesterov: u.nesterov,
	}
	u.Do(1, schedule.Map{Op: cell.ReLU, Out: op.Grad, A: op.Grad})
	for k := range moments {
		m := u.place(name(fmt.Sprint("moment", k, " ")), rows, cols, gaps)
		u.Do(0, schedule.Map{Op: cell.Mul, Out: m, A: m, B: m})
		op.Moment = append(op.Moment, m)
	}
	if copied { // a factor of a product lies in 16 bits
		op.Copy = u.place(name("copy"), rows, cols, false)
		defer u.Do(0, schedule.Gemm{A: u.Matrix(name("left"), 2, rows).All(), B: op.Copy, C: u.Matrix(name("product"), 2, cols).All()})
	}
	u.Do(0, op)
}

// many is a schedule of updates of 150 parameters of odd sizes. One of them needs several blocks.
func many(t *testing.T, moments int, rule schedule.Rule, norm bool) *schedule.Schedule {
	t.Helper()
	u := newUpdating(norm)
	for i := range 149 {
		u.grow(i, 1+i%4, 1+i*7%31, moments, rule, i%10 == 3, false)
	}
	u.grow(149, 37, 101, moments, rule, false, false)
	return finished(t, u)
}

func finished(t *testing.T, u *updating) *schedule.Schedule {
	t.Helper()
	s, err := u.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// optimising returns schedules of updates and of squares, by their special feature.
func optimising(t *testing.T) map[string]*schedule.Schedule {
	all := map[string]*schedule.Schedule{
		"sgd": many(t, 0, schedule.SGD, true), "momentum": many(t, 1, schedule.SGD, false), "adam": many(t, 2, schedule.Adam, true),
	}
	for name, precision := range map[string]schedule.Precision{"bf16": schedule.BF16, "fp16": schedule.FP16} {
		u := newUpdating(true)
		u.SetPrecision(precision)
		for i := range 5 {
			u.grow(i, 3+i, 17+2*i, 2, schedule.Adam, i == 3, i%2 == 0)
		}
		all[name] = finished(t, u)
	}
	u := newUpdating(true)
	u.SetPrecision(schedule.BF16)
	u.nesterov = true
	for i := range 5 {
		u.grow(i, 3+i, 17+2*i, 1, schedule.SGD, i == 3, i%2 == 0)
	}
	all["nesterov"] = finished(t, u)
	all["rows"] = finished(t, someRows())
	u = newUpdating(false)
	for i := range 70 {
		a := u.place(fmt.Sprint("a", i), 1+i%9, 1+i*13%41, i%5 == 2)
		u.Do(i%2, schedule.Map{Op: cell.ReLU, Out: a, A: a})
		u.Do(0, schedule.Squares{A: a, Out: u.Matrix(fmt.Sprint("sums", i), 1, 12).All().Columns(2, 1+i%(1+i%9))})
	}
	all["squares"] = finished(t, u)
	return all
}

// someRows is a schedule of tables of which some rows have a gradient: few rows and many, rows that
// are read four elements at a time or singly, and symbols that are far apart.
func someRows() *updating {
	u := newUpdating(true)
	near, far := u.Matrix("class", 9, 1).All(), u.Matrix("far", 9, 1).All()
	u.Do(0, schedule.Map{Op: cell.Add, Out: far, A: near, B: near})
	for range 5 { // up to 384
		u.Do(0, schedule.Map{Op: cell.Add, Out: far, A: far, B: far})
	}
	sums := u.Matrix("sums", 1, 20).All()
	for i, c := range []struct {
		rows, cols, bands int
		index             schedule.View
		gapParam, gapGrad bool
	}{
		{7, 33, 2, near, false, true}, {70, 33, 3, near, true, false}, {390, 36, 1, far, false, false}, {600, 8, 4, far, false, false}, {385, 1029, 2, far, false, false},
	} {
		op := schedule.Update{Param: u.place(fmt.Sprint("table", i), c.rows, c.cols, c.gapParam), Grad: u.place(fmt.Sprint("grad", i), c.rows, c.cols, c.gapGrad), Rates: u.rates, Squares: u.squares, Rows: c.index}
		u.Do(0, schedule.Map{Op: cell.Zero, Out: op.Grad})
		u.Do(0, schedule.Scatter{Index: c.index, Src: u.Matrix(fmt.Sprint("errors", i), 9, c.cols).All(), Table: op.Grad})
		u.Do(0, schedule.Squares{A: op.Grad, Out: sums.Columns(4*i, c.bands), Rows: c.index})
		u.Do(0, op)
	}
	return u
}

// TestUpdates holds updates that share launches to double precision.
func TestUpdates(t *testing.T) {
	for name, s := range optimising(t) {
		if testing.Short() && name != "adam" && name != "nesterov" && name != "rows" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			d, _ := emulated(t)
			holdAll(t, d, s)
		})
	}
}

// TestGPUUpdates holds them on a GPU.
func TestGPUUpdates(t *testing.T) {
	d := openGPU(t, time.Minute)
	for name, s := range optimising(t) {
		t.Run(name, func(t *testing.T) { holdAll(t, d, s) })
	}
}

// TestUpdateLaunches: parameters share launches, 64 each, also if their gradients are formed on
// other streams or if some have copies in 16 bits. Of a table of symbols, only occurring rows
// change.
func TestUpdateLaunches(t *testing.T) {
	adam := rnn.Optimizer{Rule: schedule.Adam, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	norm := adam
	norm.Norm = true
	for _, c := range []struct {
		layers    int
		precision rnn.Precision
		optimizer rnn.Optimizer
		oneHot    bool
		want      map[string]int
	}{
		{layers: 60, optimizer: adam, want: map[string]int{"update": 4}}, // of 242 parameters
		{layers: 60, optimizer: norm, want: map[string]int{"update": 4, "squares": 4}},
		{layers: 3, precision: rnn.BF16, optimizer: norm, want: map[string]int{"update": 2, "squares": 1}}, // biases have copies in 32 bits
		{layers: 2, optimizer: rnn.Optimizer{Norm: true}, oneHot: true, want: map[string]int{"update": 1, "update_rows": 1, "squares": 1}},
	} {
		p := rnn.Problem{Cell: cell.LSTM, Input: 40, OneHot: c.oneHot, Hidden: 8, Layers: c.layers, Batch: 2, Steps: 3, Output: 5, Precision: c.precision, Pass: rnn.Train}
		_, s, err := rnn.LayoutTraining(impl.Lookup("cudnnstyle"), p, map[string]int{"streams": 3}, c.optimizer)
		if err != nil {
			t.Fatal(err)
		}
		launches, _, err := cuda.Sources(s, nil, h200())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{"update": 0, "update_rows": 0, "squares": 0}
		for _, l := range launches {
			if _, ok := got[l.Name]; ok {
				got[l.Name]++
			}
		}
		for name, n := range got {
			if n != c.want[name] {
				t.Errorf("%d layers, %v, %+v: %d launches of %s, want %d", c.layers, c.precision, c.optimizer, n, name, c.want[name])
			}
		}
	}
}

// twice is a schedule of products of weights that a run packs both ways before it updates them.
func twice(t *testing.T, rule schedule.Rule, moments int) (s *schedule.Schedule, weights *schedule.Matrix) {
	t.Helper()
	u := newUpdating(true)
	w := u.Matrix("weights", 68, 36).All()
	packed, turned := u.Packed("packed", w.Rows, w.Cols).All(), u.Packed("turned", w.Cols, w.Rows).All()
	u.Do(0, schedule.Pack{Src: w, Dst: packed})
	u.Do(0, schedule.Pack{Src: w, Dst: turned, Trans: true})
	u.Do(0, schedule.Gemm{A: u.Matrix("left", 40, w.Rows).All(), B: packed, C: u.Matrix("product", 40, w.Cols).All()})
	u.Do(0, schedule.Gemm{A: u.Matrix("right", 40, w.Cols).All(), B: turned, C: u.Matrix("product back", 40, w.Rows).All()})
	op := schedule.Update{Rule: rule, Param: w, Grad: u.Matrix("grad", w.Rows, w.Cols).All(), Rates: u.rates, Squares: u.squares, Beta1: 0.75, Beta2: 0.9, Epsilon: 0.125}
	for i := range moments {
		m := u.Matrix(fmt.Sprint("moment", i), w.Rows, w.Cols).All()
		u.Do(0, schedule.Map{Op: cell.Mul, Out: m, A: m, B: m})
		op.Moment = append(op.Moment, m)
	}
	u.Do(0, op)
	return finished(t, u), w.M
}

// TestLargestKept: an update keeps the largest value of weights that the next run splits into
// halves, so that no launch has to find it. Values that the host writes between two runs count as
// well.
func TestLargestKept(t *testing.T) {
	d, _ := emulated(t)
	holdLargest(t, d)
}

func TestGPULargestKept(t *testing.T) { holdLargest(t, openGPU(t, time.Minute)) }

func holdLargest(t *testing.T, d device.Device) {
	t.Helper()
	for rule, moments := range map[schedule.Rule]int{schedule.SGD: 0, schedule.Adam: 2} {
		s, weights := twice(t, rule, moments)
		for _, split := range []int{1, 3} {
			if testing.Short() && (split == 3) != (rule == schedule.Adam) {
				continue
			}
			launches, _, err := cuda.Sources(s, knob.Params{"split": split}, h200())
			if err != nil {
				t.Fatal(err)
			}
			looks := 0
			for _, l := range launches {
				if l.Name == "largest" {
					looks++
				}
			}
			if looks != 2 { // for left factors
				t.Errorf("split %d: %d launches look for a largest value, want 2", split, looks)
			}
			holdWritten(t, d, s, knob.Params{"split": split}, weights, 1, 1e6, 1, 1e-6)
		}
	}
}

// holdWritten holds runs to double precision. Before each run, one matrix is written, scaled by the
// next of some factors. After each there is another run.
func holdWritten(t *testing.T, d device.Device, s *schedule.Schedule, k knob.Params, m *schedule.Matrix, factors ...float32) {
	t.Helper()
	p, err := d.Compile(s, k)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	want, rng := make([][]float64, len(s.Matrices)), rand.New(rand.NewPCG(3, 4))
	write := func(m *schedule.Matrix, factor float32) {
		values := make([]float32, m.Elements())
		for j := range values {
			if values[j] = factor * (2*rng.Float32() - 1); m.Name == "class" {
				values[j] = factor * float32(rng.IntN(7))
			}
			want[m.ID][j] = float64(values[j])
		}
		if err := p.Write(m, values); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range s.Matrices {
		if want[m.ID] = make([]float64, m.Elements()); !m.Packed {
			write(m, 1)
		}
	}
	for _, f := range factors {
		write(m, f)
		for range 2 {
			for _, n := range s.Nodes {
				devicetest.Evaluate(n.Op, want)
			}
			if _, err := p.Run(1); err != nil {
				t.Fatal(err)
			}
		}
		held(t, fmt.Sprintf("%v, scaled by %g", k, f), p, s, want)
	}
}
