package cpu

import (
	"math/rand/v2"
	"testing"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestProductsOfTheSameRowsPackTogether: products of the same rows share the packing exactly if the
// results cannot depend on it. The results are right: they are sums of small integers, which single
// precision represents exactly.
func TestProductsOfTheSameRowsPackTogether(t *testing.T) {
	const k = 70
	type matrices struct{ d, d2, in, h, dw, dr, db *schedule.Matrix }
	pair := func(x matrices) []schedule.Op {
		return []schedule.Op{outer(x.d, x.in, x.dw, false), outer(x.d, x.h, x.dr, false)}
	}
	for _, test := range []struct {
		name    string
		m, n, h int
		ops     func(matrices) []schedule.Op
		streams int
		paired  bool
	}{
		{
			name:    "both gradients",
			m:       700,
			n:       48,
			h:       31,
			ops:     pair,
			streams: 1,
			paired:  true,
		},
		{
			name: "and the bias's",
			m:    700,
			n:    48,
			h:    31,
			ops: func(x matrices) []schedule.Op {
				return append(pair(x), schedule.SumRows{A: x.d.All(), Out: x.db.All()})
			},
			streams: 1,
			paired:  true,
		},
		{
			name:    "on two streams in program order",
			m:       700,
			n:       48,
			h:       31,
			ops:     pair,
			streams: 2,
			paired:  true,
		},
		{
			name: "added to what is there",
			m:    700,
			n:    48,
			h:    31,
			ops: func(x matrices) []schedule.Op {
				return []schedule.Op{outer(x.d, x.in, x.dw, true), outer(x.d, x.h, x.dr, true), schedule.SumRows{A: x.d.All(), Out: x.db.All(), Accumulate: true}}
			},
			streams: 1,
			paired:  true,
		},
		{
			name: "the second added",
			m:    700,
			n:    48,
			h:    31,
			ops: func(x matrices) []schedule.Op {
				return []schedule.Op{outer(x.d, x.in, x.dw, false), outer(x.d, x.h, x.dr, true)}
			},
			streams: 1,
		},
		{
			name:    "few rows",
			m:       40,
			n:       48,
			h:       31,
			ops:     pair,
			streams: 1,
		},
		{
			name:    "half a strip",
			m:       700,
			n:       40,
			h:       31,
			ops:     pair,
			streams: 1,
		},
		{
			name: "of other rows",
			m:    700,
			n:    48,
			h:    31,
			ops: func(x matrices) []schedule.Op {
				return []schedule.Op{outer(x.d, x.in, x.dw, false), outer(x.d2, x.h, x.dr, false)}
			},
			streams: 1,
		},
		{
			name: "the second multiplies the first",
			m:    700,
			n:    48,
			h:    48,
			ops: func(x matrices) []schedule.Op {
				return []schedule.Op{outer(x.d, x.in, x.dw, false), schedule.Gemm{A: x.d.All(), TransA: true, B: x.dw.Band(0, k), C: x.dr.All()}}
			},
			streams: 1,
		},
	} {
		d, err := Open(Options{Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		b := schedule.NewBuilder(test.streams)
		x := matrices{
			b.Matrix("d", k, test.m), b.Matrix("d2", k, test.m), b.Matrix("in", k, test.n), b.Matrix("h", k, test.h),
			b.Matrix("dw", test.m, test.n), b.Matrix("dr", test.m, test.h), b.Matrix("db", 1, test.m),
		}
		ops := test.ops(x)
		for i, op := range ops {
			b.Do(i%test.streams, op)
		}
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		if got := len(d.packPairs(s, true)) == 1; got != test.paired {
			t.Errorf("%s: paired %v, want %v", test.name, got, test.paired)
		}
		if test.streams > 1 && len(d.packPairs(s, false)) > 0 {
			t.Errorf("%s: paired where streams run side by side", test.name)
		}
		checkIntegers(t, test.name, d, s, ops)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// checkIntegers runs products and sums of rows over matrices of small integers and compares them
// with its own.
func checkIntegers(t *testing.T, name string, d *Device, s *schedule.Schedule, ops []schedule.Op) {
	t.Helper()
	p, err := d.Compile(s, knob.Params{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	want := make([][]float32, len(s.Matrices))
	for _, m := range s.Matrices {
		v := make([]float32, m.Elements())
		for i := range v {
			v[i] = float32(rng.IntN(5) - 2)
		}
		if err := p.Write(m, v); err != nil {
			t.Fatal(err)
		}
		want[m.ID] = v
	}
	if _, err := p.Run(1); err != nil {
		t.Fatal(err)
	}
	at := func(v schedule.View, i, j int) *float32 { return &want[v.M.ID][(v.Row+i)*v.M.Cols+v.Col+j] }
	for _, op := range ops {
		switch op := op.(type) {
		case schedule.SumRows:
			for j := range op.A.Cols {
				sum := at(op.Out, 0, j)
				if !op.Accumulate {
					*sum = 0
				}
				for i := range op.A.Rows {
					*sum += *at(op.A, i, j)
				}
			}
		case schedule.Gemm:
			for i := range op.C.Rows {
				for j := range op.C.Cols {
					sum := at(op.C, i, j)
					if !op.Accumulate {
						*sum = 0
					}
					for l := range op.A.Rows {
						*sum += *at(op.A, l, i) * *at(op.B, l, j)
					}
				}
			}
		}
	}
	for _, m := range s.Matrices {
		got := make([]float32, m.Elements())
		if err := p.Read(m, got); err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if v != want[m.ID][i] {
				t.Fatalf("%s: %s[%d,%d] = %v, want %v", name, m.Name, i/m.Cols, i%m.Cols, v, want[m.ID][i])
			}
		}
	}
}
