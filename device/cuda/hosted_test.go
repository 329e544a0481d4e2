package cuda_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/emulator"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A hostedCase is a pass that a host program runs in parts.
type hostedCase struct {
	technique string
	problem   rnn.Problem
	k         knob.Params // of the technique
	on        knob.Params // of the device
	format    device.Type // of the host program's values
}

func hostedCases() []hostedCase {
	lstm := rnn.Problem{Cell: cell.LSTM, Input: 5, Hidden: 8, Layers: 2, Batch: 3, Steps: 4, Pass: rnn.Train}
	gru := rnn.Problem{Cell: cell.GRU, Input: 8, Hidden: 12, Layers: 2, Batch: 4, Steps: 3, Pass: rnn.Train, Precision: schedule.BF16}
	both := rnn.Problem{Cell: cell.LSTM, Input: 4, Hidden: 5, Layers: 1, Batch: 2, Steps: 3, Pass: rnn.Train, Precision: schedule.FP16, Direction: rnn.BothWays}
	large := rnn.Problem{Cell: cell.LSTM, Input: 33, Hidden: 33, Layers: 1, Batch: 3, Steps: 6, Pass: rnn.Train}
	forward := rnn.Problem{Cell: cell.GRU, Input: 5, Hidden: 9, Layers: 2, Batch: 3, Steps: 3}
	return []hostedCase{
		{"cudnnstyle", lstm, knob.Params{"streams": 4}, knob.Params{"graph": 1}, device.BFloat16},
		{"cudnnstyle", lstm, knob.Params{"streams": 1}, nil, device.Float32},
		{"persistent", large, knob.Params{"streams": 1}, nil, device.Float32},
		{"persistent", gru, knob.Params{"streams": 1}, knob.Params{"graph": 1}, device.BFloat16},
		{"persistent", gru, knob.Params{"streams": 4}, nil, device.Float16},
		{"cudnnstyle", both, knob.Params{"streams": 4}, nil, device.Float32},
		{"persistent", forward, nil, nil, device.Float32},
	}
}

func (c hostedCase) String() string {
	return fmt.Sprintf("%s %v %v %v %v", c.technique, c.problem, c.k, c.on, c.format)
}

// TestHosted holds parts on memory of a host program to whole runs on values that were written: one
// part after another twice, in order with the host program's stream, then as a graph of the host
// program, twice.
func TestHosted(t *testing.T) {
	for i, c := range sample(hostedCases(), 1) {
		t.Run(c.String(), func(t *testing.T) {
			compiler, d := emulation(t, 8)
			gpu := cuda.New(d, compiler, "")
			h := newHosted(t, gpu, c)
			stream := uintptr(0)
			if i%2 == 1 {
				stream = 7
			}
			for seed := range uint64(2) {
				h.fill(seed)
				h.work(t, d, stream, seed)
				h.compare(t)
			}
			h.captured(t, d)
		})
	}
}

// A hosted is two programs of one schedule: one that a host program uses, and one that runs whole.
type hosted struct {
	hostedCase
	s             *schedule.Schedule
	device        device.Hosted
	whole         device.Program
	tensors       []*tensor
	begin, finish []*tensor // moved in before the first part, and before the last
}

// A tensor is a matrix in memory of the host program.
type tensor struct {
	m       *schedule.Matrix
	place   device.Place
	offsets []int // nil: rows lie one after another
	format  device.Type
	values  []float32 // in the order of the matrix
	in, out []byte
}

// newHosted compiles c twice. The host program has each matrix in its own memory, laid out in one
// of several ways.
func newHosted(t *testing.T, gpu *cuda.Device, c hostedCase) *hosted {
	t.Helper()
	_, s, err := rnn.LayoutHosted(impl.Lookup(c.technique), c.problem, c.k)
	if err != nil {
		t.Fatal(err)
	}
	h := &hosted{hostedCase: c, s: s}
	var programs [2]device.Program
	for i := range programs {
		if programs[i], err = gpu.Compile(s, c.on); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := programs[i].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	h.device, h.whole = programs[0].(device.Hosted), programs[1]
	given := readLate(s)
	for i, m := range s.Matrices {
		if m.Private() {
			continue
		}
		x := &tensor{m: m, offsets: offsetsOf(m, i%4), format: c.format}
		if x.place, err = h.device.Place(m.All(), x.offsets); err != nil {
			t.Fatal(err)
		}
		end := m.Elements()
		if x.offsets != nil {
			end = slices.Max(x.offsets) + m.Cols
		}
		x.in, x.out = make([]byte, end*c.format.Bytes()), make([]byte, end*c.format.Bytes())
		h.tensors = append(h.tensors, x)
		if given[m] {
			h.finish = append(h.finish, x)
		} else {
			h.begin = append(h.begin, x)
		}
	}
	if c.problem.Pass == rnn.Train && (s.Parts() != 2 || len(h.finish) == 0) {
		t.Errorf("the schedule has %d parts, and the last reads %d matrices alone", s.Parts(), len(h.finish))
	}
	return h
}

// offsetsOf returns one of four layouts of m: its own, rows in reverse order, rows with gaps, and
// groups of rows that were turned, as batches before steps are.
func offsetsOf(m *schedule.Matrix, way int) []int {
	if way == 0 {
		return nil
	}
	at := make([]int, m.Rows)
	for r := range at {
		switch way {
		case 1:
			at[r] = (m.Rows - 1 - r) * m.Cols
		case 2:
			at[r] = r*(m.Cols+3) + 1
		case 3:
			at[r] = r * m.Cols
			if m.Rows%2 == 0 {
				at[r] = (r%2*m.Rows/2 + r/2) * m.Cols
			}
		}
	}
	return at
}

// readLate finds the matrices that nothing writes and that are read after a pause alone.
func readLate(s *schedule.Schedule) map[*schedule.Matrix]bool {
	late, paused := map[*schedule.Matrix]bool{}, false
	for op := range s.Operations() {
		if _, ok := op.(schedule.Pause); ok {
			paused = true
		}
		for v, write := range schedule.Accesses(op) {
			if before, known := late[v.M]; !known {
				late[v.M] = paused && !write
			} else {
				late[v.M] = before && !write
			}
		}
	}
	return late
}

// fill gives all tensors new values, which the host program's format holds exactly.
func (h *hosted) fill(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	indexed := map[*schedule.Matrix]bool{}
	for op := range h.s.Operations() {
		if op, ok := op.(schedule.Gather); ok {
			indexed[op.Index.M] = true
		}
	}
	for _, x := range h.tensors {
		x.values = make([]float32, x.m.Elements())
		if indexed[x.m] { // by which both ways turn rows
			for i := range x.values {
				x.values[i] = float32(len(x.values) - 1 - i)
			}
			continue
		}
		for i := range x.values {
			x.values[i] = rounded(float32(rng.NormFloat64()*0.3), x.format)
		}
	}
}

func elementOf(t device.Type) driver.Element {
	return map[device.Type]driver.Element{device.Float16: driver.Half, device.BFloat16: driver.Brain}[t]
}

func rounded(v float32, t device.Type) float32 {
	if t == device.Float32 {
		return v
	}
	return elementOf(t).Widen(elementOf(t).Narrow(v))
}

// at returns where element c of row r lies, in elements.
func (x *tensor) at(r, c int) int {
	if x.offsets != nil {
		return x.offsets[r] + c
	}
	return r*x.m.Cols + c
}

// put writes values to memory of the host program, and take reads them.
func (x *tensor) put(memory []byte, values []float32) {
	for i, v := range values {
		at := x.at(i/x.m.Cols, i%x.m.Cols)
		if x.format == device.Float32 {
			binary.LittleEndian.PutUint32(memory[4*at:], math.Float32bits(v))
		} else {
			binary.LittleEndian.PutUint16(memory[2*at:], elementOf(x.format).Narrow(v))
		}
	}
}

func (x *tensor) take(memory []byte) []float32 {
	values := make([]float32, x.m.Elements())
	for i := range values {
		at := x.at(i/x.m.Cols, i%x.m.Cols)
		if x.format == device.Float32 {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(memory[4*at:]))
		} else {
			values[i] = elementOf(x.format).Widen(binary.LittleEndian.Uint16(memory[2*at:]))
		}
	}
	return values
}

func movesOf(list []*tensor, out bool) (all []device.Move) {
	for _, x := range list {
		memory := x.in
		if out {
			memory = x.out
		}
		all = append(all, device.Move{Place: x.place, At: unsafe.Pointer(&memory[0]), Type: x.format})
	}
	return all
}

// works returns what the host program asks for: all but given gradients come in, and the first part
// runs; then they come in, the last part runs, and everything goes out.
func (h *hosted) works() []device.Work {
	last := h.s.Parts() - 1
	list := []device.Work{{In: movesOf(h.begin, false), Prepare: true, Part: 0}}
	if last > 0 {
		list = append(list, device.Work{In: movesOf(h.finish, false), Part: last})
	}
	list[last].Out = movesOf(h.tensors, true)
	return list
}

// work lets the host program write its memory, on its stream, before each call.
func (h *hosted) work(t *testing.T, d *emulator.Driver, stream uintptr, seed uint64) {
	t.Helper()
	put := func(list []*tensor) {
		if err := d.Work(stream, func() {
			for _, x := range list {
				x.put(x.in, x.values)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i, w := range h.works() {
		put([][]*tensor{h.begin, h.finish}[i])
		if err := h.device.Do(w, stream); err != nil {
			t.Fatal(err)
		}
		if err := d.Work(stream, func() {
			for _, x := range h.tensors { // what was read may be overwritten now
				clear(x.in)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.device.Settle(); err != nil {
		t.Fatal(err)
	}
}

// compare holds what went out to a whole run.
func (h *hosted) compare(t *testing.T) {
	t.Helper()
	for _, x := range h.tensors {
		if err := h.whole.Write(x.m, x.values); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.whole.Prepare(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.whole.Run(1); err != nil {
		t.Fatal(err)
	}
	written := 0
	for _, x := range h.tensors {
		want := make([]float32, x.m.Elements())
		if err := h.whole.Read(x.m, want); err != nil {
			t.Fatal(err)
		}
		for i, got := range x.take(x.out) {
			if want := rounded(want[i], x.format); got != want && (got == got || want == want) {
				t.Fatalf("element %d of %s is %v, and %v in a whole run", i, x.m.Name, got, want)
			}
			if want[i] != x.values[i] {
				written++
			}
		}
	}
	if written == 0 {
		t.Error("a run changes nothing")
	}
}

// captured has the host program capture all work in a graph of its own, and runs it on other values
// twice.
func (h *hosted) captured(t *testing.T, d *emulator.Driver) {
	t.Helper()
	const stream = 9
	if err := d.BeginHost(stream); err != nil {
		t.Fatal(err)
	}
	for _, w := range h.works() {
		if err := h.device.Do(w, stream); err != nil {
			t.Fatal(err)
		}
	}
	g, err := d.EndHost()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(2) {
		h.fill(10 + seed)
		for _, x := range h.tensors {
			x.put(x.in, x.values)
		}
		if err := d.Replay(g); err != nil {
			t.Fatal(err)
		}
		if err := h.device.Settle(); err != nil {
			t.Fatal(err)
		}
		h.compare(t)
	}
}

// pausing is a schedule of two parts that double a matrix and look up a row by it.
func pausing(t *testing.T) (s *schedule.Schedule, x, y, row *schedule.Matrix) {
	b := schedule.NewBuilder(1)
	x, y, row = b.Matrix("x", 3, 4), b.Matrix("y", 3, 4), b.Matrix("row", 1, 2)
	index, table := b.Matrix("index", 1, 1), b.Matrix("table", 5, 2)
	b.Do(0, schedule.Map{Op: cell.Copy, Out: y.All(), A: x.All()})
	b.Cut()
	b.Do(0, schedule.Map{Op: cell.Add, Out: y.All(), A: y.All(), B: x.All()})
	b.Do(0, schedule.Gather{Index: index.All(), Table: table.All(), Out: row.All()})
	b.Pause()
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s, x, y, row
}

// TestHostedNull: no address is zeros for what comes in, and nothing for what goes out.
func TestHostedNull(t *testing.T) {
	d, _ := emulated(t)
	s, x, y, _ := pausing(t)
	prog, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	p := prog.(device.Hosted)
	in, err1 := p.Place(x.Band(1, 2), nil)
	out, err2 := p.Place(y.All(), nil)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := p.Write(x, slices.Repeat([]float32{3}, 12)); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 13) // not aligned to four elements
	for _, w := range []device.Work{
		{In: []device.Move{{Place: in}}, Part: 0, Out: []device.Move{{Place: out}}},
		{Part: 1},
		{Part: -1, Out: []device.Move{{Place: out, At: unsafe.Pointer(&got[1])}}},
	} {
		if err := p.Do(w, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Settle(); err != nil {
		t.Fatal(err)
	}
	if want := []float32{0, 6, 6, 6, 6, 0, 0, 0, 0, 0, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("moved out %v, want %v", got, want)
	}
}

// TestHostedNowhere: rows with a negative offset come in as zeros and go out to nowhere.
func TestHostedNowhere(t *testing.T) {
	d, _ := emulated(t)
	s, x, y, _ := pausing(t)
	prog, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	p := prog.(device.Hosted)
	in, err1 := p.Place(x.All(), []int{4, -1, 0})
	out, err2 := p.Place(y.All(), []int{-1, 4, 0})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	given, got := []float32{1, 1, 1, 1, 2, 2, 2, 2}, make([]float32, 8)
	for _, w := range []device.Work{
		{In: []device.Move{{Place: in, At: unsafe.Pointer(&given[0])}}, Part: 0},
		{Part: 1, Out: []device.Move{{Place: out, At: unsafe.Pointer(&got[0])}}},
	} {
		if err := p.Do(w, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Settle(); err != nil {
		t.Fatal(err)
	}
	if want := []float32{2, 2, 2, 2, 0, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("moved out %v, want %v", got, want)
	}
}

// TestHostedErrors: errors of kernels come with a later call, once. Wrong work is declined.
func TestHostedErrors(t *testing.T) {
	d, _ := emulated(t)
	s, _, _, _ := pausing(t)
	prog, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := prog.(device.Hosted)
	index := s.Matrices[slices.IndexFunc(s.Matrices, func(m *schedule.Matrix) bool { return m.Name == "index" })]
	place, err := p.Place(index.All(), nil)
	if err != nil {
		t.Fatal(err)
	}
	bad, good := []float32{9}, []float32{1}
	call := func(v []float32) error {
		return p.Do(device.Work{In: []device.Move{{Place: place, At: unsafe.Pointer(&v[0])}}, Part: 1}, 0)
	}
	if err := call(bad); err != nil {
		t.Fatal(err)
	}
	if err := p.Settle(); err == nil || !strings.Contains(err.Error(), "an index is outside its table") {
		t.Errorf("a wrong index is told as %v", err)
	}
	if err := call(bad); err != nil {
		t.Fatal(err)
	}
	if err := p.Read(index, good); err != nil { // waits for all work
		t.Fatal(err)
	}
	good[0] = 1
	if err := call(good); err == nil || !strings.Contains(err.Error(), "an index is outside its table") {
		t.Errorf("the next call tells of a wrong index as %v", err)
	}
	if err := call(good); err != nil {
		t.Error(err)
	}
	if err := p.Settle(); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"part 2":          p.Do(device.Work{Part: 2}, 0),
		"place 5":         p.Do(device.Work{Part: -1, Out: []device.Move{{Place: 5}}}, 0),
		"1 offsets":       second(p.Place(s.Matrices[0].All(), []int{0})),
		"elements behind": second(p.Place(index.All(), []int{1 << 32})),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s is told as %v", what, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := call(good); err == nil || p.Settle() == nil {
		t.Error("a closed program works")
	}
}

func second[T any](_ T, err error) error { return err }

// TestHostedBetween: nothing that a part finds out of a matrix serves the next part, as the host
// program may write the matrix in between. The first part needs its largest value, which the second
// does not reach, and could sum its rows as well.
func TestHostedBetween(t *testing.T) {
	d, _ := emulated(t)
	const rows, cols = 256, 4
	b := schedule.NewBuilder(1)
	x, w := b.Matrix("x", rows, cols), b.Matrix("w", rows, cols)
	first, second, sums := b.Matrix("first", cols, cols), b.Matrix("second", cols, cols), b.Matrix("sums", 1, cols)
	b.Do(0, schedule.Gemm{A: x.All(), TransA: true, B: w.All(), C: first.All()})
	b.Cut()
	b.Do(0, schedule.SumRows{A: x.All(), Out: sums.All()})
	b.Do(0, schedule.Gemm{A: x.All(), TransA: true, B: w.All(), C: second.All()})
	b.Pause()
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	prog, err := d.Compile(s, knob.Params{"split": 3})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	p := prog.(device.Hosted)
	var places [5]device.Place
	var values [5][]float32
	for i, m := range []*schedule.Matrix{x, w, first, second, sums} {
		if places[i], err = p.Place(m.All(), nil); err != nil {
			t.Fatal(err)
		}
		values[i] = make([]float32, m.Elements())
	}
	move := func(i int) device.Move { return device.Move{Place: places[i], At: unsafe.Pointer(&values[i][0])} }
	for i := range values[0] {
		values[0][i], values[1][i] = 1e4*float32(1+i%7), float32(1+i%5)
	}
	if err := p.Do(device.Work{In: []device.Move{move(0), move(1)}, Out: []device.Move{move(2)}}, 0); err != nil {
		t.Fatal(err)
	}
	if err := p.Settle(); err != nil {
		t.Fatal(err)
	}
	for i := range values[0] {
		values[0][i] *= 1e-9
	}
	if err := p.Do(device.Work{In: []device.Move{move(0)}, Part: 1, Out: []device.Move{move(3), move(4)}}, 0); err != nil {
		t.Fatal(err)
	}
	if err := p.Settle(); err != nil {
		t.Fatal(err)
	}
	for j := range cols {
		sum := 0.0
		for r := range rows {
			sum += float64(values[0][r*cols+j])
		}
		near(t, "the sum", values[4][j], sum)
		for k := range cols {
			product := 0.0
			for r := range rows {
				product += float64(values[0][r*cols+j]) * float64(values[1][r*cols+k])
			}
			near(t, "the first product", values[2][j*cols+k], product*1e9)
			near(t, "the second product", values[3][j*cols+k], product)
		}
	}
}

func near(t *testing.T, what string, got float32, want float64) {
	t.Helper()
	if math.Abs(float64(got)-want) > 1e-5*math.Abs(want) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
