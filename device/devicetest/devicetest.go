// Package devicetest is the test suite that every device passes. It runs each
// operation alone, at sizes and views that do not divide into tiles, and random
// schedules over several streams. It checks all of them against a plain evaluation
// in double precision.
package devicetest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Run runs the suite on devices that compute in the same precisions, each beside the
// others: evaluation, which takes the longest, is done once for all of them.
func Run(t *testing.T, devices ...device.Device) {
	t.Run("operations", func(t *testing.T) { operations(t, devices) })
	t.Run("scans", func(t *testing.T) { scans(t, devices) })
	t.Run("schedules", func(t *testing.T) { schedules(t, devices) })
	t.Run("misuse", func(t *testing.T) {
		for _, d := range devices {
			misuse(t, d)
		}
	})
}

// lengths are ones, odd and prime, one past a vector, a tile and a block.
var lengths = []int{1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 48, 49, 64, 65, 97, 257}

// A trial builds one operation over fresh matrices.
type trial struct {
	b    *schedule.Builder
	rng  *rand.Rand
	size func() int
}

// place is a view of a fresh matrix, now and then a rectangle in its middle.
func (t *trial) place(rows, cols int) schedule.View {
	if t.rng.IntN(2) == 0 {
		return t.b.Matrix("m", rows, cols).All()
	}
	top, left := t.rng.IntN(3), t.rng.IntN(19)
	return schedule.View{M: t.b.Matrix("m", top+rows+t.rng.IntN(3), left+cols+t.rng.IntN(5)), Row: top, Col: left, Rows: rows, Cols: cols}
}

// index is a column whose values are rows of a table; see fill.
func (t *trial) index(rows int) schedule.View { return t.b.Matrix("index", rows, 1).All() }

func (t *trial) flip() bool { return t.rng.IntN(2) == 0 }

func oriented(trans bool, rows, cols int) (int, int) {
	if trans {
		return cols, rows
	}
	return rows, cols
}

// makers build each kind of operation. Every kind of schedule.Op is here.
func makers() map[string]func(t *trial) schedule.Op {
	all := map[string]func(t *trial) schedule.Op{
		"gemm": func(t *trial) schedule.Op {
			m, n, k := t.size(), t.size(), t.size()
			ta, tb := t.flip(), t.flip()
			ar, ac := oriented(ta, m, k)
			br, bc := oriented(tb, k, n)
			return schedule.Gemm{A: t.place(ar, ac), B: t.place(br, bc), C: t.place(m, n), TransA: ta, TransB: tb, Accumulate: t.flip()}
		},
		"gemm packed": func(t *trial) schedule.Op {
			m, n, k := t.size(), t.size(), t.size()
			tb := t.flip()
			br, bc := oriented(tb, k, n)
			packed := t.b.Packed("packed", k, n).All()
			t.b.Do(0, schedule.Pack{Src: t.place(br, bc), Dst: packed, Trans: tb})
			return schedule.Gemm{A: t.place(m, k), B: packed, C: t.place(m, n), Accumulate: t.flip()}
		},
		"sumrows": func(t *trial) schedule.Op {
			rows, cols := t.size(), t.size()
			return schedule.SumRows{A: t.place(rows, cols), Out: t.place(1, cols), Accumulate: t.flip()}
		},
		"gather": func(t *trial) schedule.Op {
			rows, cols := t.size(), t.size()
			return schedule.Gather{Index: t.index(rows), Table: t.place(5, cols), Out: t.place(rows, cols)}
		},
		"scatter": func(t *trial) schedule.Op {
			rows, cols := t.size(), t.size()
			return schedule.Scatter{Index: t.index(rows), Src: t.place(rows, cols), Table: t.place(5, cols)}
		},
		"softmaxloss": func(t *trial) schedule.Op {
			rows, cols := t.size(), 4+t.size()
			op := schedule.SoftmaxLoss{Logits: t.place(rows, cols), Target: t.index(rows), Loss: t.place(rows, 1), Grad: t.flip(), Scale: 0.25}
			if op.Prob = op.Logits; t.flip() {
				op.Prob = t.place(rows, cols)
			}
			return op
		},
	}
	for _, o := range cell.Ops() {
		all["map "+o.String()] = func(t *trial) schedule.Op {
			rows, cols := t.size(), t.size()
			m := schedule.Map{Op: o, Out: t.place(rows, cols)}
			operand := func() schedule.View {
				switch t.rng.IntN(3) {
				case 0:
					return t.place(1, cols)
				case 1:
					return m.Out
				}
				return t.place(rows, cols)
			}
			if o.Operands() > 0 {
				m.A = operand()
			}
			if o.Operands() > 1 {
				m.B = operand()
			}
			return m
		}
	}
	all["maps"] = func(t *trial) schedule.Op {
		rows, cols := t.size(), t.size()
		views := []schedule.View{t.place(1, cols)}
		for range 5 {
			views = append(views, t.place(rows, cols))
		}
		var op schedule.Maps
		for range 1 + t.rng.IntN(20) {
			pick := func(from int) schedule.View { return views[from+t.rng.IntN(len(views)-from)] }
			ops := []cell.Op{cell.Sigmoid, cell.Tanh, cell.OneMinus, cell.Mul, cell.SigmoidGrad, cell.Copy, cell.Zero} // bounded
			op.Append(schedule.Map{Op: ops[t.rng.IntN(len(ops))], Out: pick(1), A: pick(0), B: pick(0)})
		}
		return op
	}
	for _, c := range cell.All() {
		all["cell "+c.Name] = func(t *trial) schedule.Op {
			rows, h, g := t.size(), t.size(), len(c.Gates)
			op := schedule.Cell{Cell: c, Train: t.flip(), X: t.place(rows, g*h), BX: t.place(1, g*h)}
			if n := c.Recurrent; n > 0 {
				op.R, op.BR = t.place(rows, n*h), t.place(1, n*h)
			}
			if n := len(c.Peeps); n > 0 {
				op.Peep = t.place(1, n*h)
			}
			if op.Train && c.Saved > 0 {
				op.Saved = t.place(rows, c.Saved*h)
			}
			for range c.States {
				op.Prev, op.Next = append(op.Prev, t.place(rows, h)), append(op.Next, t.place(rows, h))
			}
			return op
		}
		all["cellbackward "+c.Name] = func(t *trial) schedule.Op {
			rows, h, g := t.size(), t.size(), len(c.Gates)
			op := schedule.CellBackward{Cell: c, DOut: t.place(rows, h), DX: t.place(rows, g*h)}
			if n := len(c.Peeps); n > 0 {
				op.Peep, op.DPeep = t.place(1, n*h), t.place(rows, n*h)
			}
			if c.Saved > 0 {
				op.Saved = t.place(rows, c.Saved*h)
			}
			if c.SplitGrad {
				op.DR = t.place(rows, c.Recurrent*h)
			}
			for s := range c.States {
				op.Prev, op.Next = append(op.Prev, t.place(rows, h)), append(op.Next, t.place(rows, h))
				op.DNext = append(op.DNext, t.place(rows, h))
				switch {
				case !c.DirectPrev(s):
					op.DPrev = append(op.DPrev, schedule.View{})
				case t.flip():
					op.DPrev = append(op.DPrev, op.DNext[s])
				default:
					op.DPrev = append(op.DPrev, t.place(rows, h))
				}
			}
			return op
		}
	}
	for _, c := range cell.Every() {
		for name, build := range sequenceMakers(c) {
			all[name+" "+c.Name] = build
		}
		if c.Recurrent == len(c.Gates) && len(c.Peeps) == 0 && cell.Lookup(c.Name) == c {
			for name, build := range stackMakers(c) {
				all[name+" "+c.Name] = build
			}
		}
	}
	return all
}

// many settings are too many to run all of them.
const many = 16

func operations(t *testing.T, devices []device.Device) {
	trials := 40
	if testing.Short() {
		trials = 10
	}
	precisions := precisions(devices[0])
	for name, build := range makers() {
		t.Run(name, func(t *testing.T) {
			var all []run
			for seed := range uint64(trials) {
				rng := rand.New(rand.NewPCG(seed, 7))
				tr := &trial{b: schedule.NewBuilder(1), rng: rng, size: func() int { return lengths[rng.IntN(len(lengths))] }}
				tr.b.Do(0, build(tr))
				s, err := tr.b.Schedule()
				if err != nil {
					t.Fatal(err)
				}
				if seed%3 != 0 && isSequence(s.Nodes[len(s.Nodes)-1].Op) {
					continue // workers meet at every step: a third of the trials take as long as all of another
				}
				if packs(s) && !kinked(s.Nodes[len(s.Nodes)-1].Op) {
					s.Precision = precisions[seed%uint64(len(precisions))]
				}
				r := run{s, seed, make([][]knob.Params, len(devices))}
				for i, d := range devices {
					spoken(t, d, s)
					settings := knob.OneAtATime(d.Knobs(s))
					if len(settings) > many { // each may be a kernel to compile, of each shape: a few of both
						if seed%15 != 0 {
							continue
						}
						settings = []knob.Params{settings[0], settings[1+rng.IntN(len(settings)-1)]}
					}
					r.settings[i] = settings
					anticipate(d, s, settings)
				}
				all = append(all, r)
			}
			for _, r := range all {
				r.compare(t, devices)
			}
		})
	}
}

// spoken holds what d offers for s to d's vocabulary: each knob is in it, with
// every value that d takes for s, and with the same default.
func spoken(t *testing.T, d device.Device, s *schedule.Schedule) {
	t.Helper()
	all := d.Vocabulary()
	for _, k := range d.Knobs(s) {
		of := knob.Find(all, k.Name)
		if of == nil {
			t.Errorf("%s: knob %s is not in the vocabulary", d.Info().Name, k.Name)
			continue
		}
		wrong := slices.DeleteFunc(slices.Concat(k.Values, []int{k.Min, k.Max}), of.Accepts)
		if len(wrong) > 0 || k.Values[0] != of.Values[0] {
			t.Errorf("%s: knob %s: the vocabulary lacks %v of %s; defaults %d and %d", d.Info().Name, k.Name, wrong, k.Offer(), k.Values[0], of.Values[0])
		}
	}
}

// A run is a schedule that is to be compared, with each of the settings of each
// device; a device without settings is left out.
type run struct {
	*schedule.Schedule
	seed     uint64
	settings [][]knob.Params
}

// compare compares r on each of devices.
func (r *run) compare(t *testing.T, devices []device.Device) {
	t.Helper()
	var w *wanted
	for i, d := range devices {
		if len(r.settings[i]) == 0 {
			continue
		}
		if w == nil {
			w = evaluate(r.Schedule, r.seed)
		}
		w.compare(t, d, r.settings[i])
	}
}

// anticipate has a device that compiles kernels begin with those of s.
func anticipate(d device.Device, s *schedule.Schedule, settings []knob.Params) {
	if a, ok := d.(device.Anticipator); ok {
		for _, k := range settings {
			a.Anticipate(s, k)
		}
	}
}

// precisions are those that d computes in.
func precisions(d device.Device) []schedule.Precision {
	var all []schedule.Precision
	for i, name := range schedule.Precisions() {
		if slices.Contains(d.Info().Precision, name) {
			all = append(all, schedule.Precision(i))
		}
	}
	return all
}

func packs(s *schedule.Schedule) bool {
	return slices.ContainsFunc(s.Matrices, func(m *schedule.Matrix) bool { return m.Packed })
}

// schedules holds random schedules over several streams, with conflicts of every
// kind, to their meaning: one operation after the other.
func schedules(t *testing.T, devices []device.Device) {
	trials := 60
	if testing.Short() {
		trials = 15
	}
	for seed := range uint64(trials) {
		s := random(seed)
		w := evaluate(s, seed)
		for _, d := range devices {
			w.compare(t, d, knob.OneAtATime(d.Knobs(s)))
		}
	}
}

func random(seed uint64) *schedule.Schedule {
	rng := rand.New(rand.NewPCG(seed, 3))
	b := schedule.NewBuilder(1 + rng.IntN(5))
	const rows, cols = 24, 40
	var ms []*schedule.Matrix
	for range 4 {
		ms = append(ms, b.Matrix("m", rows, cols))
	}
	view := func(r, c int) schedule.View {
		return schedule.View{M: ms[rng.IntN(len(ms))], Row: rng.IntN(rows - r + 1), Col: rng.IntN(cols - c + 1), Rows: r, Cols: c}
	}
	for range 1 + rng.IntN(80) {
		r, c := 1+rng.IntN(rows), 1+rng.IntN(cols)
		stream := rng.IntN(b.Streams())
		out := view(r, c)
		from := view(1, c)
		for from.M == out.M { // an operation does not overwrite its own operand in part
			from = view(1, c)
		}
		switch rng.IntN(4) {
		case 0: // bounded, or values would grow without end
			b.Do(stream, schedule.Map{Op: cell.Tanh, Out: out, A: from})
		case 1:
			b.Do(stream, schedule.Map{Op: cell.OneMinus, Out: out, A: from})
		case 2:
			b.Do(stream, schedule.SumRows{A: view(r, c), Out: schedule.View{M: b.Matrix("sum", 1, c), Rows: 1, Cols: c}})
		default:
			k := 1 + rng.IntN(rows)
			product := b.Matrix("product", r, c).All()
			b.Do(stream, schedule.Gemm{A: view(r, k), B: view(k, c), C: product})
			b.Do(stream, schedule.Map{Op: cell.Sigmoid, Out: out, A: product.Band(0, 1)})
		}
	}
	s, err := b.Schedule()
	if err != nil {
		panic(err)
	}
	return s
}

// fill sets every matrix to random values, indices to rows of a table of five.
// Operands of products in fewer bits have so few that none is rounded.
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

// A wanted is what a schedule makes of random values.
type wanted struct {
	*schedule.Schedule
	seed        uint64
	start, want values
}

// evaluate runs s in double precision.
func evaluate(s *schedule.Schedule, seed uint64) *wanted {
	w := &wanted{s, seed, newValues(s), newValues(s)}
	fill(s, w.start, seed)
	for i, v := range w.start {
		copy(w.want[i], v)
	}
	for _, n := range s.Nodes {
		w.want.eval(n.Op)
	}
	return w
}

// compare runs s on d, with each of the settings, and by evaluation and compares
// every matrix, guard elements around the views included.
func compare(t testing.TB, d device.Device, s *schedule.Schedule, seed uint64, settings []knob.Params) {
	t.Helper()
	evaluate(s, seed).compare(t, d, settings)
}

// compare is compare of what is evaluated already.
func (w *wanted) compare(t testing.TB, d device.Device, settings []knob.Params) {
	t.Helper()
	s := w.Schedule
	for i, k := range settings {
		prog, err := d.Compile(s, k)
		if errors.Is(err, schedule.ErrUnsupported) {
			if i > 0 {
				continue // no setting for this schedule, which the device runs otherwise
			}
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := named(prog); err != nil {
			t.Error(err)
		}
		if err := w.hold(prog); err != nil {
			t.Errorf("%s, seed %d %v: %v; the last operation is %v", d.Info().Key, w.seed, k, err, s.Nodes[len(s.Nodes)-1].Op)
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
func write(prog device.Program, s *schedule.Schedule, start values) error {
	for _, m := range s.Matrices {
		if m.Private() {
			continue
		}
		src := make([]float32, m.Elements())
		for i, x := range start[m.ID] {
			src[i] = float32(x)
		}
		if err := prog.Write(m, src); err != nil {
			return err
		}
	}
	return nil
}

// results runs prog once from start and reads all of its matrices.
func results(prog device.Program, s *schedule.Schedule, start values) ([][]float32, error) {
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
	}
	return all, nil
}

// hold runs prog once from the random values and holds its matrices to what is wanted.
func (w *wanted) hold(prog device.Program) error {
	s := w.Schedule
	all, err := results(prog, s, w.start)
	if err != nil {
		return err
	}
	// Rounding: sums of up to 257 products, through a chain of operations
	// that do not amplify. See rnn.Tolerance.
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
			scale = max(scale, math.Abs(x))
		}
		for i, x := range w.want[m.ID] {
			if diff := math.Abs(float64(got[i]) - x); !(diff <= tolerance*scale) {
				return fmt.Errorf("matrix %d %s[%d,%d] is %v, want %v", m.ID, m.Name, i/m.Cols, i%m.Cols, got[i], x)
			}
		}
	}
	return nil
}

// misuse checks that wrong calls are refused.
func misuse(t *testing.T, d device.Device) {
	b := schedule.NewBuilder(1)
	m, table := b.Matrix("m", 2, 3), b.Matrix("table", 4, 3)
	index, packed := b.Matrix("index", 2, 1), b.Packed("packed", 3, 2)
	b.Do(0, schedule.Pack{Src: m.All(), Dst: packed.All(), Trans: true})
	b.Do(0, schedule.Gather{Index: index.All(), Table: table.All(), Out: m.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Compile(s, knob.Params{"no such knob": 1}); err == nil {
		t.Error("an unknown knob is accepted")
	}
	if n, err := d.Memory(s, nil); err != nil || n < s.Memory()-packed.All().Bytes() {
		t.Errorf("memory is %d, %v: want at least the matrices", n, err)
	}
	prog, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"a write of part of a row": prog.Write(m, make([]float32, 5)),
		"a long write":             prog.Write(m, make([]float32, 9)),
		"a write of nothing":       prog.Write(m, nil),
		"a long read":              prog.Read(m, make([]float32, 7)),
		"a packed matrix's write":  prog.Write(packed, make([]float32, 6)),
		"a packed matrix's read":   prog.Read(packed, make([]float32, 6)),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	rows := make([]float32, 6)
	if err := errors.Join(prog.Write(m, []float32{1, 2, 3, 4, 5, 6}), prog.Write(m, []float32{7, 8, 9}), prog.Read(m, rows)); err != nil || !slices.Equal(rows, []float32{7, 8, 9, 4, 5, 6}) {
		t.Errorf("after a write of the first row a matrix is %v, %v", rows, err)
	}
	got := make([]float32, 6)
	if err := errors.Join(prog.Write(m, []float32{1, 2, 3, 4, 5, 6}), prog.Write(m, []float32{7, 8, 9}), prog.Read(m, got)); err != nil || !slices.Equal(got, []float32{7, 8, 9, 4, 5, 6}) {
		t.Errorf("after a write of its first row a matrix is %v, %v", got, err)
	}
	if _, err := prog.Run(1); err != nil {
		t.Error(err)
	}
	for _, bad := range []float32{4, -1, 0.5, float32(math.NaN()), 1e30} {
		if err := prog.Write(index, []float32{0, bad}); err != nil {
			t.Fatal(err)
		}
		if _, err := prog.Run(1); err == nil {
			t.Errorf("index %v into a table of 4 rows is accepted", bad)
		}
	}
	if err := prog.Write(index, []float32{0, 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := prog.Run(1); err != nil {
		t.Errorf("a good run after a bad one: %v", err)
	}
	if err := errors.Join(prog.Close(), prog.Close()); err != nil {
		t.Error(fmt.Errorf("closing twice: %w", err))
	}
	if _, err := prog.Run(1); err == nil {
		t.Error("a closed program runs")
	}
}
