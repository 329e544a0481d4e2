package cpu

import (
	"runtime"
	"slices"
	"testing"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestDenormalNumbersAreZeros checks that every worker treats denormal numbers as zeros, if the
// build has assembly. Other threads of the program must not.
func TestDenormalNumbersAreZeros(t *testing.T) {
	if !flushes {
		t.Skip("this build has no assembly")
	}
	const tiny = float32(0x1p-130)
	d, err := Open(Options{Threads: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b := schedule.NewBuilder(1)
	in, out := b.Matrix("in", 90, 700), b.Matrix("out", 90, 700) // enough for all workers
	b.Do(0, schedule.Map{Op: cell.Add, Out: out.All(), A: in.All(), B: in.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	made, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	if p := made.(*program); p.awake != 3 {
		t.Fatalf("%d workers run a large operation", p.awake)
	}
	values := slices.Repeat([]float32{tiny, 0x1p-126}, in.Elements()/2)
	if err := made.Write(in, values); err != nil {
		t.Fatal(err)
	}
	if _, err := made.Run(1); err != nil {
		t.Fatal(err)
	}
	if err := made.Read(out, values); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(values); i += 2 {
		if values[i] != 0 || values[i+1] != 0x1p-125 {
			t.Fatalf("element %d: %g and %g", i, values[i], values[i+1])
		}
	}
	sum := tiny
	for range 20 {
		runtime.Gosched()
		if sum = tiny + values[0]; sum != tiny {
			t.Fatalf("%g + %g is %g here", tiny, values[0], sum)
		}
	}
}
