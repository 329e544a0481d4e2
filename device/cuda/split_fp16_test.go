package cuda_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A factoring is a product whose factors are parts of larger matrices. It is added to the old
// value.
type factoring struct {
	m, n, k        int
	transA, transB bool
	packed         bool // the right factor is packed before all runs
	left, right    int  // columns before a factor, and more rows above it
	odd            bool // rows of the left factor are unaligned
	out            int  // columns before the product
	accumulate     bool
	scale          float64 // of values of the left factor; one in a hundred is a thousandth as large
	rightScale     float64 // of values of the right factor; 0: 1
}

// scales are those of the factors and of an old value.
func (f factoring) scales() [3]float64 {
	right := f.rightScale
	if right == 0 {
		right = 1
	}
	return [3]float64{f.scale, right, 1}
}

// factorings have sizes of all kinds: 1, primes, one more and one less than parts of blocks.
func factorings(large bool) []factoring {
	all := []factoring{
		{m: 1, n: 1, k: 4, scale: 1},
		{m: 5, n: 3, k: 4, packed: true, transB: true, scale: 1e-20},
		{m: 300, n: 130, k: 36, packed: true, scale: 1e20},
		{m: 257, n: 129, k: 100, transB: true, packed: true, accumulate: true, scale: 1},
		{m: 36, n: 131, k: 97, transA: true, left: 8, right: 3, out: 1, scale: 1},
		{m: 260, n: 20, k: 65, transA: true, accumulate: true, out: 4, scale: 1e-3},
		{m: 31, n: 24, k: 44, left: 4, right: 1, transB: true, scale: 3},
		{m: 64, n: 128, k: 32, transA: true, transB: true, scale: 1},
		{m: 12, n: 8, k: 2500, transA: true, accumulate: true, scale: 1},
		{m: 9, n: 8, k: 4100, out: 2, scale: 1},
		{m: 70, n: 40, k: 41, odd: true, left: 1, transB: true, packed: true, scale: 1},
		{m: 41, n: 40, k: 71, odd: true, left: 2, transA: true, scale: 1},
		{m: 14, n: 17, k: 20, transB: true, packed: true, scale: 1e-27},
		{m: 17, n: 20, k: 14, transA: true, scale: 1, rightScale: 1e-27},
		{m: 6, n: 9, k: 33, scale: 1e-25, rightScale: 1e25},
		{m: 9, n: 6, k: 33, scale: 1e-12, rightScale: 1e-14},
	}
	if large {
		all = append(all,
			factoring{m: 65537, n: 1536, k: 256, transB: true, packed: true, scale: 1},
			factoring{m: 16384, n: 256, k: 2312, packed: true, scale: 1e-6},
			factoring{m: 2312, n: 256, k: 65537, transA: true, scale: 1e-6},
			factoring{m: 1024, n: 256, k: 16384, transA: true, accumulate: true, left: 512, scale: 1},
			factoring{m: 2048, n: 2049, k: 2048, transB: true, scale: 1},
		)
	}
	return all
}

func (f factoring) String() string {
	return fmt.Sprintf("%dx%dx%d,%t,%t,%t,%d,%d,%d,%t,%g,%g", f.m, f.n, f.k, f.transA, f.transB, f.packed, f.left, f.right, f.out, f.accumulate, f.scale, f.scales()[1])
}

// A productRun is a product that ran, with its factors and the old value as they were written.
type productRun struct {
	factoring
	views  [3]schedule.View // left, right, product
	values [3][]float32
	got    []float32
}

// run forms the product of random factors.
func (f factoring) run(t *testing.T, d device.Device, k knob.Params) *productRun {
	t.Helper()
	build := schedule.NewBuilder(1)
	view := func(name string, trans bool, rows, cols, more int) schedule.View {
		if trans {
			rows, cols = cols, rows
		}
		ld := cols + more
		if name == "a" && !f.odd {
			ld = (ld + 3) / 4 * 4
		}
		return build.Matrix(name, rows+more, ld).All().Band(more, rows).Columns(more, cols)
	}
	r := &productRun{factoring: f}
	r.views = [3]schedule.View{view("a", f.transA, f.m, f.k, f.left), view("b", f.transB, f.k, f.n, f.right), view("c", false, f.m, f.n, f.out)}
	op := schedule.Gemm{A: r.views[0], TransA: f.transA, B: r.views[1], TransB: f.transB, C: r.views[2], Accumulate: f.accumulate}
	if f.packed {
		op.B, op.TransB = build.Packed("packed", f.k, f.n).All(), false
		build.Prepare(schedule.Pack{Src: r.views[1], Dst: op.B, Trans: f.transB})
	}
	build.Do(0, op)
	s, err := build.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Compile(s, k)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rng := rand.New(rand.NewPCG(uint64(f.m), uint64(f.k)))
	for i, v := range r.views {
		r.values[i] = make([]float32, v.M.Elements())
		for j := range r.values[i] {
			x := f.scales()[i] * (2*rng.Float64() - 1)
			if i == 0 && rng.IntN(100) == 0 {
				x /= 1000
			}
			r.values[i][j] = float32(x)
		}
		if err := p.Write(v.M, r.values[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(1); err != nil {
		t.Fatal(err)
	}
	r.got = make([]float32, r.views[2].M.Elements())
	if err := p.Read(r.views[2].M, r.got); err != nil {
		t.Fatal(err)
	}
	return r
}

// at is a value of the left factor (0), the right one (1) or the old value (2).
func (r *productRun) at(which int, trans bool, i, j int) float64 {
	if trans {
		i, j = j, i
	}
	v := r.views[which]
	return float64(r.values[which][(v.Row+i)*v.M.Cols+v.Col+j])
}

// off is the error of a value of the product, relative to the size of its terms.
func (r *productRun) off(i, j int) float64 {
	sum, size, out := 0.0, 0.0, r.views[2]
	for q := range r.k {
		term := r.at(0, r.transA, i, q) * r.at(1, r.transB, q, j)
		sum, size = sum+term, size+math.Abs(term)
	}
	if r.accumulate {
		old := r.at(2, false, i, j)
		sum, size = sum+old, size+math.Abs(old)
	}
	err := math.Abs(float64(r.got[(out.Row+i)*out.M.Cols+out.Col+j]) - sum)
	return err / (size + 1e-4*r.scale*r.scales()[1])
}

// hold compares some values of the product with double precision.
func (f factoring) hold(t *testing.T, d device.Device, k knob.Params) {
	t.Helper()
	r, worst := f.run(t, d, k), 0.0
	if f.m*f.n < 1<<16 {
		for i := range f.m {
			for j := range f.n {
				worst = max(worst, r.off(i, j))
			}
		}
	} else {
		rng := rand.New(rand.NewPCG(uint64(f.n), uint64(f.k)))
		for range 2000 {
			worst = max(worst, r.off(rng.IntN(f.m), rng.IntN(f.n)))
		}
		worst = max(worst, r.off(f.m-1, f.n-1))
	}
	if !(worst < 1e-6) {
		t.Errorf("an error is %.2g of the terms' sizes", worst)
	}
	t.Logf("errors are %.2g of the terms' sizes at most", worst)
	out := r.views[2]
	for i, v := range r.got {
		if row, col := i/out.M.Cols-out.Row, i%out.M.Cols-out.Col; (row < 0 || col < 0 || row >= f.m || col >= f.n) && v != r.values[2][i] {
			t.Fatalf("row %d, column %d is beyond the product and was written", row, col)
		}
	}
}

// TestSplitFP16 holds products by the split-fp16 kernel to double precision.
func TestSplitFP16(t *testing.T) {
	d, _ := emulated(t)
	for _, f := range sample(factorings(false), 5) {
		t.Run(f.String(), func(t *testing.T) { f.hold(t, d, knob.Params{"split": 3}) })
	}
}

// TestSplitFP16ByLibrary holds products by the library, of factors in halves, to double precision.
func TestSplitFP16ByLibrary(t *testing.T) {
	d, _ := emulated(t)
	for _, f := range factorings(false) {
		t.Run(f.String(), func(t *testing.T) { f.hold(t, d, knob.Params{"split": 1}) })
	}
}

// TestSplitFP16InPortions is the same if packed right factors do not fit.
func TestSplitFP16InPortions(t *testing.T) {
	d, _ := emulated(t)
	defer cuda.LimitPacked(1 << 15)()
	for _, f := range []factoring{
		{m: 12, n: 20, k: 201, transB: true, scale: 1},
		{m: 13, n: 140, k: 97, transA: true, left: 3, accumulate: true, scale: 1},
		{m: 11, n: 20, k: 131, odd: true, left: 2, right: 1, scale: 1},
		{m: 11, n: 20, k: 150, odd: true, transA: true, scale: 1},
	} {
		t.Run(f.String(), func(t *testing.T) { f.hold(t, d, knob.Params{"split": 3}) })
	}
}

// TestSplitFP16PortionsHaveRoom: a product in portions has room for the partial sums of each
// portion. The last portion is shorter, but may have more parts than the first.
func TestSplitFP16PortionsHaveRoom(t *testing.T) {
	for _, size := range [][3]int{{1024, 1536, 142944}, {1536, 1536, 151392}, {256, 3072, 52832}, {2048, 8192, 49216}, {1024, 1536, 143360}} {
		m, n, k := size[0], size[1], size[2]
		b := schedule.NewBuilder(1)
		b.Do(0, schedule.Gemm{A: b.Matrix("a", k, m).All(), TransA: true, B: b.Matrix("b", k, n).All(), C: b.Matrix("c", m, n).All()})
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		end, all, err := cuda.HalvesEnd(s, h200())
		if err != nil || end == 0 || end > all {
			t.Errorf("%v: parts end at %d of %d bytes: %v", size, end, all, err)
		}
	}
}

// TestGPUSplitFP16 is the same on a GPU, with larger products.
func TestGPUSplitFP16(t *testing.T) {
	d := openGPU(t, time.Minute)
	for _, f := range factorings(true) {
		t.Run(f.String(), func(t *testing.T) { f.hold(t, d, knob.Params{"split": 3}) })
	}
}

// sharedFactors is a schedule of products that share left factors. Some factors are written to in
// between, and one product has a row added to each of its rows.
func sharedFactors(t *testing.T) *schedule.Schedule {
	t.Helper()
	b := schedule.NewBuilder(1)
	matrix := func(name string, rows, cols int) schedule.View { return b.Matrix(name, rows, cols).All() }
	a, large, row := matrix("a", 40, 36), matrix("large", 4, 36), matrix("row", 1, 44)
	right, deep := matrix("right", 36, 44), matrix("deep", 40, 20)
	c, d, e, f := matrix("c", 40, 44), matrix("d", 40, 44), matrix("e", 36, 20), matrix("f", 36, 44)
	b.Do(0, schedule.Gemm{A: a, B: right, C: c})
	b.Do(0, schedule.Map{Op: cell.Add, Out: c, A: c, B: row})
	b.Do(0, schedule.Gemm{A: a, TransA: true, B: deep, C: e}) // a's largest value is known
	b.Do(0, schedule.Map{Op: cell.Mul, Out: a.Band(7, 4), A: a.Band(7, 4), B: large})
	b.Do(0, schedule.Gemm{A: a, B: right, C: d}) // right's largest value is known, a's is not
	b.Do(0, schedule.Gemm{A: a, TransA: true, B: c, C: f})
	b.Do(0, schedule.Map{Op: cell.Mul, Out: d, A: d, B: row})
	tall, sum, half := matrix("tall", 700, 36), matrix("sum", 1, 36), matrix("half", 1, 18)
	b.Do(0, schedule.Gemm{A: tall, B: right, C: matrix("g", 700, 44)})
	b.Do(0, schedule.SumRows{A: tall.Columns(18, 18), Out: half}) // not the view whose largest value is found
	b.Do(0, schedule.Gemm{A: tall.Columns(0, 36), TransA: true, B: matrix("wide", 700, 20), C: matrix("h", 36, 20)})
	b.Do(0, schedule.Map{Op: cell.Mul, Out: tall.Band(699, 1), A: tall.Band(699, 1), B: sum})
	b.Do(0, schedule.Gemm{A: tall, B: right, C: matrix("i", 700, 44)}) // its rows are summed
	b.Do(0, schedule.Gemm{A: right, B: d, TransB: true, C: matrix("j", 36, 40)})
	b.Do(0, schedule.SumRows{A: tall, Out: sum, Accumulate: true})
	for i, apart := range []bool{true, false} { // sums of rows after a split-K product
		from, to := matrix(fmt.Sprint("from", i), 700, 36), matrix(fmt.Sprint("to", i), 36, 36)
		b.Do(0, schedule.Gemm{A: from, TransA: true, B: matrix(fmt.Sprint("by", i), 700, 36), C: to})
		if apart {
			to = matrix("row sum", 1, 36)
		}
		b.Do(0, schedule.SumRows{A: from, Out: to.Band(0, 1), Accumulate: true})
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAbsmaxIsFoundOnce: the largest value of a factor is found once, until something writes to it.
// A product's kernel adds a row to it.
func TestAbsmaxIsFoundOnce(t *testing.T) {
	launches, _, err := cuda.Sources(sharedFactors(t), knob.Params{"split": 3}, h200())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range launches {
		names = append(names, l.Name)
	}
	want := "largest largest rightpieces split_fp16 largest rightpieces split_fp16 map_mul largest rightpieces split_fp16 largest rightpieces split_fp16 map_mul " +
		"largest rightpieces split_fp16 sumrows sumrows largest rightpieces split_fp16 addparts map_mul sumrows rightpieces split_fp16 largest rightpieces split_fp16 sumrows " +
		"sumrows largest rightpieces split_fp16 addparts_several sumrows largest rightpieces split_fp16 addparts sumrows"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("launches are\n%s, want\n%s", got, want)
	}
	if testing.Short() {
		t.Skip("not with -short: TestSplitFP16 runs some of these launches")
	}
	d, _ := emulated(t)
	holdAbsmax(t, d)
}

// TestGPUAbsmaxIsFoundOnce holds the results to double precision on a GPU.
func TestGPUAbsmaxIsFoundOnce(t *testing.T) { holdAbsmax(t, openGPU(t, time.Minute)) }

func holdAbsmax(t *testing.T, d device.Device) { holdAll(t, d, sharedFactors(t)) }

// TestSplitFP16RowOfAnotherStream: a row that another stream writes is added after the product.
func TestSplitFP16RowOfAnotherStream(t *testing.T) {
	b := schedule.NewBuilder(2)
	matrix := func(name string, rows, cols int) schedule.View { return b.Matrix(name, rows, cols).All() }
	row, c := matrix("row", 1, 44), matrix("c", 40, 44)
	b.Do(1, schedule.Map{Op: cell.Add, Out: row, A: row, B: matrix("more", 1, 44)})
	b.Do(0, schedule.Gemm{A: matrix("a", 40, 36), B: matrix("b", 36, 44), C: c})
	b.Do(0, schedule.Map{Op: cell.Add, Out: c, A: c, B: row})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	launches, _, err := cuda.Sources(s, knob.Params{"split": 3}, h200())
	if err != nil {
		t.Fatal(err)
	}
	if last := launches[len(launches)-1].Name; last != "map_add" {
		t.Errorf("the last launch is %s", last)
	}
	d, _ := emulated(t)
	holdAll(t, d, s)
}

// TestSplitFP16IsChosenWhereFastest: the method measured to be the fastest on an H200 is chosen.
func TestSplitFP16IsChosenWhereFastest(t *testing.T) {
	for _, c := range []struct {
		m, n, k int
		transA  bool
		form    string
		row     bool // a row is added to each row
	}{
		{m: 16384, n: 1536, k: 41, form: "split_fp16"},                // 42 µs; 130 by the library, both factors split
		{m: 65536, n: 2312, k: 256, form: "split_fp16"},               // 432 µs for 472
		{m: 16384, n: 2312, k: 256, form: "split_fp16", row: true},    // 133 for 121 and 78
		{m: 65536, n: 256, k: 2312, form: "split_fp16"},               // 413 for 921
		{m: 2312, n: 256, k: 65536, transA: true, form: "split_fp16"}, // 458; 1,608 by the library in single precision, 1,551 with split factors
		{m: 1024, n: 256, k: 16384, transA: true, form: "split_fp16"}, // 63; 173; 212
		{m: 1536, n: 41, k: 16384, transA: true, form: "split_fp16"},  // 62; 121 in single precision
		{m: 16384, n: 1024, k: 4096, form: "split_fp16"},              // 690 for 775
		{m: 6400, n: 2048, k: 512, form: "split"},                     // 73; 80
		{m: 200, n: 2048, k: 512, form: ""},
	} {
		b := schedule.NewBuilder(1)
		op := schedule.Gemm{A: b.Matrix("a", c.m, c.k).All(), TransA: c.transA, B: b.Matrix("b", c.k, c.n).All(), C: b.Matrix("c", c.m, c.n).All()}
		if c.transA {
			op.A = b.Matrix("aᵀ", c.k, c.m).All()
		} else {
			packed := b.Packed("packed", c.k, c.n).All()
			b.Prepare(schedule.Pack{Src: op.B, Dst: packed})
			op.B = packed
		}
		if b.Do(0, op); c.row {
			b.Do(0, schedule.Map{Op: cell.Add, Out: op.C, A: op.C, B: b.Matrix("row", 1, c.n).All()})
		}
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		launches, _, err := cuda.Sources(s, nil, h200())
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, l := range launches {
			if l.Name == "split_fp16" || l.Name == "split" {
				got = l.Name
			}
		}
		if got != c.form {
			t.Errorf("%d × %d × %d: %q, and %q was faster", c.m, c.n, c.k, got, c.form)
		}
	}
}
