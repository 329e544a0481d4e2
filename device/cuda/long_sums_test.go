package cuda_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Tensor cores cut off their sums beyond 24 bits, so the error of a sum grows with the terms that one of them adds.
// A product of more than longSum terms is in sums of fewer, which are added in single precision.
const longSum = 4096

// longProduct is a product of 3×5200 ones by 5200×40 ones, but that each row begins with 2²⁴. Whatever adds a one to
// that loses it. add: the product is added to ones.
func longProduct(t *testing.T, add bool) (s *schedule.Schedule, a, b, c *schedule.Matrix) {
	const m, n, k = 3, 40, 5200
	builder := schedule.NewBuilder(1)
	a, b, c = builder.Matrix("a", m, k), builder.Matrix("b", k, n), builder.Matrix("c", m, n)
	packed := builder.Packed("p", k, n)
	builder.Do(0, schedule.Pack{Src: b.All(), Dst: packed.All()})
	builder.Do(0, schedule.Gemm{A: a.All(), B: packed.All(), C: c.All(), Accumulate: add})
	s, err := builder.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s, a, b, c
}

// longSums runs them as skinny products and from split factors.
func longSums(t *testing.T, d device.Device) {
	ones := func(m *schedule.Matrix) []float32 {
		v := make([]float32, m.Elements())
		for i := range v {
			v[i] = 1
		}
		return v
	}
	for _, run := range []struct {
		k    knob.Params
		most float64 // ones that a sum may lose
	}{
		{knob.Params{"narrow": 3}, 256},
		{knob.Params{"narrow": 2, "split": 1}, longSum},
	} {
		for _, add := range []bool{false, true} {
			s, a, b, c := longProduct(t, add)
			p, err := d.Compile(s, run.k)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			large, got := ones(a), ones(c)
			want := 1<<24 + float64(a.Cols-1)
			if add {
				want++
			}
			for i := 0; i < len(large); i += a.Cols {
				large[i] = 1 << 24
			}
			for m, v := range map[*schedule.Matrix][]float32{a: large, b: ones(b), c: got} {
				if err := p.Write(m, v); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := p.Run(1); err != nil {
				t.Fatal(err)
			}
			if err := p.Read(c, got); err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				if math.Abs(float64(v)-want) > run.most {
					t.Fatalf("%v, added %v: value %d is %v, want %v", run.k, add, i, v, want)
				}
			}
		}
	}
}

func TestLongSums(t *testing.T) {
	d, _ := emulated(t)
	longSums(t, d)
}

// TestGPULongSums runs them on a GPU.
func TestGPULongSums(t *testing.T) { longSums(t, openGPU(t, time.Minute)) }

// TestLongSumsOfLibrary: the library adds no more terms than that, and each half of a factor once.
func TestLongSumsOfLibrary(t *testing.T) {
	s, a, _, _ := longProduct(t, false)
	products, err := cuda.Products(s, knob.Params{"narrow": 2, "split": 1}, h200())
	if err != nil {
		t.Fatal(err)
	}
	halves := 0
	for i, p := range products {
		if at := int(p.A-products[0].A) / 2; at != halves || p.B-products[0].B != p.A-products[0].A {
			t.Errorf("product %d begins at half %d, after %d", i, at, halves)
		}
		halves += p.K
		if large := halves - max(halves-p.K, 2*a.Cols); large > longSum { // a third are products of the larger halves
			t.Errorf("product %d of %d adds %d terms", i, len(products), large)
		}
	}
	if halves != 3*a.Cols {
		t.Errorf("%d halves are multiplied of %d", halves, 3*a.Cols)
	}
}

// TestSpillsLongSums: skinny kernels of long sums do not spill.
func TestSpillsLongSums(t *testing.T) {
	c := hopper(t)
	for _, l := range []devicetest.Layer{
		{Cell: cell.RNNReLU, Hidden: 5120, Batch: 64}, {Cell: cell.LSTM, Hidden: 5120, Batch: 16, Train: true}, {Cell: cell.GRU, Hidden: 5120, Batch: 128, Train: true},
	} {
		l.Steps = 1
		s, err := devicetest.Case{Layer: l, Stepwise: true}.Build()
		if err != nil {
			t.Fatal(err)
		}
		launches, texts, err := cuda.Sources(s, knob.Params{"narrow": 1}, h200())
		if err != nil {
			t.Fatal(err)
		}
		last := len(launches) - 1
		if !strings.HasPrefix(launches[last].Name, "narrow_") || strings.Contains(texts[last], "FOLD = 0") {
			t.Errorf("%v ends with %s, which does not add parts of a sum", l, launches[last].Name)
		}
		if n := recorded(t, c, stackRecord, launches[last], texts[last]); n > 0 {
			t.Errorf("%v: %d bytes of stack", l, n)
		}
	}
}
