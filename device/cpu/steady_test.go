package cpu

import (
	"errors"
	"math"
	"slices"
	"testing"
	"unsafe"

	"rnnbench/device"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestSteadyPacks: runs of a host program do not pack weights again until these change. Other runs
// pack always, and so do those that change the weights themselves.
func TestSteadyPacks(t *testing.T) {
	for _, inRun := range []bool{false, true} {
		b := schedule.NewBuilder(1)
		in, w, out := b.Matrix("in", 2, 3), b.Matrix("w", 3, 5), b.Matrix("out", 2, 5)
		packed := b.Packed("packed", 3, 5)
		b.Do(0, schedule.Pack{Src: w.All(), Dst: packed.All()})
		for i := range 2 {
			b.Do(0, schedule.Gemm{A: in.All(), B: packed.All(), C: out.All(), Accumulate: i > 0})
		}
		if inRun {
			b.Do(0, schedule.Map{Op: cell.Copy, A: w.All(), Out: w.All()})
		}
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		d, err := Open(Options{Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		made, err := d.Compile(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer made.Close()
		p, given := made.(*program), slices.Repeat([]float32{1}, w.Elements())
		at, err := p.Place(w.All(), nil)
		if err = errors.Join(err, p.Write(in, given[:in.Elements()]), p.Write(w, given)); err != nil {
			t.Fatal(err)
		}
		weights := []device.Move{{Place: at, At: unsafe.Pointer(&given[0])}}
		hosted := func(moves []device.Move) func() error {
			return func() error { return p.Do(device.Work{In: moves}, 0) }
		}
		for i, step := range []struct {
			name  string
			do    func() error
			packs bool
		}{
			{"a run", func() error { _, err := p.Run(1); return err }, true},
			{"the first run of the host program", hosted(nil), true},
			{"its second run", hosted(nil), inRun},
			{"its run with new weights", hosted(weights), true},
			{"the run after that", hosted(nil), inRun},
			{"the run after Write", func() error { return errors.Join(p.Write(w, given), hosted(nil)()) }, true},
		} {
			for j := range p.memory[packed.ID] { // what is not packed again spoils the result
				p.memory[packed.ID][j] = float32(math.NaN())
			}
			got := make([]float32, out.Elements())
			if err := errors.Join(step.do(), p.Read(out, got)); err != nil {
				t.Fatal(err)
			}
			if packs := got[0] == 6; packs != step.packs {
				t.Errorf("weights change in runs: %v; step %d, %s: packs %v, want %v", inRun, i, step.name, packs, step.packs)
			}
		}
	}
}
