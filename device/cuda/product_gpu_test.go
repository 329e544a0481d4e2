package cuda_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A multiplication is a product to be timed, of M×K by K×N values.
type multiplication struct {
	m, n, k        int
	transA, transB bool
	packed         bool // the right factor is packed before all runs
	precision      schedule.Precision
}

func (m multiplication) String() string {
	name := fmt.Sprintf("%dx%dx%d", m.m, m.n, m.k)
	for mark, is := range map[string]bool{"Aᵀ": m.transA, "Bᵀ": m.transB, "packed": m.packed} {
		if is {
			name += "," + mark
		}
	}
	return name + "," + m.precision.String()
}

// BenchmarkGPUProducts times products on the first GPU, replayed as a graph of twenty, and holds
// them to double precision. The error is the largest of 256 values, relative to the largest of
// these values.
func BenchmarkGPUProducts(b *testing.B) {
	d := openGPU(b, time.Minute)
	var all []multiplication
	for _, size := range [][2]int{{2048, 512}, {4096, 1024}, {6144, 1536}} {
		all = append(all,
			multiplication{m: 16384, n: size[0], k: size[1], transB: true, packed: true},
			multiplication{m: 16384, n: size[1], k: size[0], packed: true},
			multiplication{m: size[0], n: size[1], k: 16384, transA: true},
		)
	}
	all = append(all, multiplication{m: 6400, n: 2048, k: 512, transB: true, packed: true}, multiplication{m: 1024, n: 2048, k: 512, transB: true, packed: true},
		multiplication{m: 256, n: 2048, k: 512, transB: true, packed: true})
	for _, steps := range []int{16384, 65536} { // of an LS-LSTM of 256 units and 2312 outputs
		for _, size := range [][2]int{{2312, 256}, {1536, 256}, {1024, 256}} {
			all = append(all,
				multiplication{m: steps, n: size[0], k: size[1], transB: true, packed: true},
				multiplication{m: steps, n: size[1], k: size[0], packed: true},
				multiplication{m: size[0], n: size[1], k: steps, transA: true},
			)
		}
	}
	for _, m := range all {
		for _, split := range []int{2, 1, 3} {
			b.Run(fmt.Sprintf("%v/split=%d", m, split), func(b *testing.B) { multiply(b, d, m, knob.Params{"split": split}) })
		}
	}
}

// BenchmarkGPUSkinny times products of few rows, by the vendor's library and by the skinny kernel.
func BenchmarkGPUSkinny(b *testing.B) {
	d := openGPU(b, time.Minute)
	for _, p := range []schedule.Precision{schedule.FP32, schedule.BF16, schedule.TF32} {
		for _, size := range [][2]int{{2048, 512}, {4096, 1024}, {6144, 1536}, {1760, 1760}, {512, 2048}, {1024, 4096}} {
			m := multiplication{m: 64, n: size[0], k: size[1], transB: size[0] > size[1], packed: true, precision: p}
			b.Run(fmt.Sprint(m, "/library"), func(b *testing.B) { multiply(b, d, m, knob.Params{"narrow": 2}) })
			for _, width := range []int{0, 32, 64} {
				b.Run(fmt.Sprintf("%v/width=%d", m, width), func(b *testing.B) {
					multiply(b, d, m, knob.Params{"narrow": 3, "narrowwidth": width})
				})
			}
		}
	}
}

// BenchmarkGPUFewRows times products of so few rows that they read little but weights.
func BenchmarkGPUFewRows(b *testing.B) {
	d := openGPU(b, time.Minute)
	for _, p := range []schedule.Precision{schedule.FP32, schedule.BF16} {
		for _, size := range [][2]int{{8448, 2816}, {6144, 2048}, {4096, 1024}, {2560, 2560}} {
			for _, rows := range []int{1, 4, 16, 32} {
				m := multiplication{m: rows, n: size[0], k: size[1], transB: true, packed: true, precision: p}
				for name, k := range map[string]knob.Params{"library": {"narrow": 2}, "own": {"narrow": 3}, "chosen": nil} {
					b.Run(fmt.Sprint(m, "/", name), func(b *testing.B) { multiply(b, d, m, k) })
				}
			}
		}
	}
}

func multiply(b *testing.B, d device.Device, m multiplication, k knob.Params) {
	const times = 20
	build := schedule.NewBuilder(1)
	view := func(name string, trans bool, rows, cols int) schedule.View {
		if trans {
			rows, cols = cols, rows
		}
		return build.Matrix(name, rows, cols).All()
	}
	left, right, out := view("a", m.transA, m.m, m.k), view("b", m.transB, m.k, m.n), view("c", false, m.m, m.n)
	op := schedule.Gemm{A: left, TransA: m.transA, B: right, TransB: m.transB, C: out}
	if m.packed {
		op.B, op.TransB = build.Packed("packed", m.k, m.n).All(), false
		build.Prepare(schedule.Pack{Src: right, Dst: op.B, Trans: m.transB})
	}
	for range times {
		build.Do(0, op)
	}
	s, err := build.Schedule()
	if err != nil {
		b.Fatal(err)
	}
	s.Precision = m.precision
	with := knob.Params{"graph": 1}
	for name, v := range k {
		with[name] = v
	}
	p, err := d.Compile(s, with)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	var values [2][]float32
	for i, v := range []schedule.View{left, right} {
		values[i] = make([]float32, v.M.Elements())
		for j := range values[i] {
			values[i][j] = 2*rng.Float32() - 1
		}
		if err := p.Write(v.M, values[i]); err != nil {
			b.Fatal(err)
		}
	}
	got := make([]float32, out.M.Elements())
	if err := p.Prepare(); err != nil {
		b.Fatal(err)
	}
	if _, err := p.Run(1); err != nil {
		b.Fatal(err)
	}
	if err := p.Read(out.M, got); err != nil {
		b.Fatal(err)
	}
	var seconds []float64
	for b.Loop() {
		sample, err := p.Run(2)
		if err != nil {
			b.Fatal(err)
		}
		seconds = append(seconds, sample.Device.Seconds()/2/times)
	}
	slices.Sort(seconds)
	t := seconds[len(seconds)/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(t*1e6, "µs")
	b.ReportMetric(2*float64(m.m)*float64(m.n)*float64(m.k)/t/1e12, "TFLOP/s")
	b.ReportMetric(m.deviation(rng, values[0], values[1], got), "error")
}

// deviation returns the error of some values of a product.
func (m multiplication) deviation(rng *rand.Rand, left, right, got []float32) float64 {
	worst, largest := 0.0, 0.0
	for range 256 {
		i, j := rng.IntN(m.m), rng.IntN(m.n)
		sum := 0.0
		for k := range m.k {
			at, bt := i*m.k+k, k*m.n+j
			if m.transA {
				at = k*m.m + i
			}
			if m.transB {
				bt = j*m.k + k
			}
			sum += float64(left[at]) * float64(right[bt])
		}
		worst = max(worst, math.Abs(sum-float64(got[i*m.n+j])))
		largest = max(largest, math.Abs(sum))
	}
	return worst / largest
}
