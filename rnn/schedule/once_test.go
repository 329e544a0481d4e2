package schedule

import (
	"slices"
	"testing"

	"rnnbench/rnn/cell"
)

// TestEqualOperationsAreKeptOnce: equal operations are kept once, however many others are forgotten
// meanwhile, and each is checked.
func TestEqualOperationsAreKeptOnce(t *testing.T) {
	b := NewBuilder(1)
	m := b.Matrix("m", 2*remembered, 4)
	size := func() int64 { return b.s.operations }
	zero := Map{Op: cell.Zero, Out: m.Band(0, 1)}
	b.Do(0, zero)
	one := size()
	b.Do(0, zero)
	b.Prepare(zero)
	if size() != one {
		t.Errorf("three that are equal take %d bytes, and one %d", size(), one)
	}
	for i := range 2 * remembered {
		b.Do(0, Map{Op: cell.Zero, Out: m.Band(i, 1)})
		if len(b.recent) > remembered {
			t.Fatalf("%d operations are remembered", len(b.recent))
		}
	}
	if size() != 2*remembered*one { // the first came again before it was forgotten
		t.Errorf("%d that differ take %d bytes, and one %d", 2*remembered, size(), one)
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Nodes); n != 2+2*remembered || s.Nodes[0].Op != Op(zero) || s.Nodes[1].Op != Op(zero) {
		t.Errorf("%d nodes, the first are %v and %v", n, s.Nodes[0].Op, s.Nodes[1].Op)
	}
	bad := Map{Op: cell.Zero, Out: m.Band(2*remembered, 1)}
	for range 2 {
		if b.Do(0, bad); b.err == nil {
			t.Error("an operation beyond its matrix is accepted")
		}
	}
}

// TestAccesses compares the fast path of the commonest operations with what they read and write.
func TestAccesses(t *testing.T) {
	b := NewBuilder(1)
	x, y, z := b.Matrix("x", 4, 4).All(), b.Matrix("y", 4, 4).All(), b.Matrix("z", 4, 4).All()
	for _, op := range []Op{
		Gemm{A: x, B: y, C: z}, Gemm{A: x, B: y, C: z, Accumulate: true},
		Map{Op: cell.Zero, Out: z}, Map{Op: cell.Tanh, Out: z, A: x}, Map{Op: cell.Add, Out: z, A: x, B: z},
		SumRows{A: x, Out: y.Band(0, 1)}, SumRows{A: x, Out: y.Band(0, 1), Accumulate: true},
	} {
		var reads, writes []View
		for v, write := range Accesses(op) {
			if write {
				writes = append(writes, v)
			} else {
				reads = append(reads, v)
			}
		}
		if !slices.Equal(reads, op.Reads()) || !slices.Equal(writes, op.Writes()) {
			t.Errorf("%v: reads %v and writes %v", op, reads, writes)
		}
		n := 0
		for range Accesses(op) {
			n++
			break
		}
		if n != 1 {
			t.Errorf("%v: %d accesses after the end", op, n)
		}
		if a := testing.AllocsPerRun(10, func() { b.s.operations += Bytes(op) }); a > 0 {
			t.Errorf("%v: %g allocations", op, a)
		}
	}
}
