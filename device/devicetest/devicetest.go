// Package devicetest is the test suite that every device passes. It runs each operation alone, at
// sizes and views that are no multiples of tiles, and random schedules over several streams. It
// compares all results with a plain evaluation in double precision.
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

// Run runs the suite on several devices, which must compute in the same precisions. The evaluation,
// which takes the longest, is done once for all devices.
func Run(t *testing.T, devices ...device.Device) { suite(t, testing.Short(), devices) }

// RunShort runs the suite with few sizes of each operation, for devices that pass the work on to one that Run tests.
func RunShort(t *testing.T, devices ...device.Device) { suite(t, true, devices) }

func suite(t *testing.T, short bool, devices []device.Device) {
	t.Run("operations", func(t *testing.T) { operations(t, short, devices) })
	t.Run("scans", func(t *testing.T) { scans(t, short, devices) })
	t.Run("schedules", func(t *testing.T) { schedules(t, devices) })
	t.Run("changes", func(t *testing.T) { changes(t, devices) })
	t.Run("odd logits", func(t *testing.T) {
		for _, d := range devices {
			oddLogits(t, d)
		}
	})
	t.Run("choices", func(t *testing.T) {
		for _, d := range devices {
			choices(t, d)
		}
	})
	t.Run("misuse", func(t *testing.T) {
		for _, d := range devices {
			misuse(t, d)
		}
	})
}

// many is the most settings of an operation that are all run.
const many = 16

func operations(t *testing.T, short bool, devices []device.Device) {
	trials := 20
	if short {
		trials = 6
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
					continue // workers meet at every step: a third of these trials takes as long as all trials of other operations
				}
				if packs(s) && !kinked(s.Nodes[len(s.Nodes)-1].Op) {
					s.Precision = precisions[seed%uint64(len(precisions))]
				}
				r := run{s, seed, make([][]knob.Params, len(devices))}
				for i, d := range devices {
					checkVocabulary(t, d, s)
					settings := knob.OneAtATime(d.Knobs(s))
					if len(settings) > many { // each setting of each shape may need a kernel of its own: run a few
						if seed%15 != 0 {
							continue
						}
						settings = []knob.Params{settings[0], settings[1+rng.IntN(len(settings)-1)]}
					}
					r.settings[i] = settings
					precompile(d, s, settings)
				}
				all = append(all, r)
			}
			for _, r := range all {
				r.compare(t, devices)
			}
		})
	}
}

// checkVocabulary checks the knobs that d offers for s against d's vocabulary. It must have each
// knob, with all the values that d accepts for s and with the same default. A tuner tries no
// internal knob.
func checkVocabulary(t *testing.T, d device.Device, s *schedule.Schedule) {
	t.Helper()
	all := d.Vocabulary()
	for _, k := range d.Knobs(s) {
		of := knob.Find(all, k.Name)
		if of == nil {
			t.Errorf("%s: knob %s is not in the vocabulary", d.Info().Name, k.Name)
			continue
		}
		if of.Internal != k.Internal || k.Internal && len(k.Values) > 1 {
			t.Errorf("%s: knob %s: internal is %v here and %v in the vocabulary, with values %v", d.Info().Name, k.Name, k.Internal, of.Internal, k.Values)
		}
		wrong := slices.DeleteFunc(slices.Concat(k.Values, []int{k.Min, k.Max}), of.Accepts)
		if len(wrong) > 0 || k.Values[0] != of.Values[0] {
			t.Errorf("%s: knob %s: the vocabulary lacks %v of %s; defaults %d and %d", d.Info().Name, k.Name, wrong, k.Offer(), k.Values[0], of.Values[0])
		}
	}
}

// A run is a schedule to compare, with the settings for each device. A device without settings is
// left out.
type run struct {
	*schedule.Schedule
	seed     uint64
	settings [][]knob.Params
}

// compare compares r on each device.
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
		w.compare(t, d, r.settings[i], 1)
	}
}

// precompile starts to compile the kernels of s, if d is a device.Precompiler.
func precompile(d device.Device, s *schedule.Schedule, settings []knob.Params) {
	if a, ok := d.(device.Precompiler); ok {
		for _, k := range settings {
			a.Precompile(s, k)
		}
	}
}

// precisions returns the precisions that d computes in, but for int8, which declines products of many
// rows: techniques test it.
func precisions(d device.Device) []schedule.Precision {
	var all []schedule.Precision
	for i, name := range schedule.Precisions() {
		if slices.Contains(d.Info().Precision, name) && schedule.Precision(i) != schedule.INT8 {
			all = append(all, schedule.Precision(i))
		}
	}
	return all
}

func packs(s *schedule.Schedule) bool {
	return slices.ContainsFunc(s.Matrices, func(m *schedule.Matrix) bool { return m.Packed })
}

// schedules compares random schedules over several streams, with conflicts of every kind, with
// running their operations one after the other.
func schedules(t *testing.T, devices []device.Device) {
	trials := 40
	if testing.Short() {
		trials = 15
	}
	for seed := range uint64(trials) {
		s := random(seed)
		w := evaluate(s, seed)
		for _, d := range devices {
			w.compare(t, d, knob.OneAtATime(d.Knobs(s)), 1)
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
		for from.M == out.M { // an operation may not overwrite part of its own operand
			from = view(1, c)
		}
		switch rng.IntN(4) {
		case 0: // bounded, so that values do not grow without end
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

// misuse checks that invalid calls return errors.
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
