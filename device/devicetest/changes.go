package devicetest

import (
	"errors"
	"math"
	"testing"

	"rnnbench/device"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// change is a Change of random sizes, whose Out is not negative.
func (t *trial) change() schedule.Op {
	rows, cols := t.size(), t.size()
	op := schedule.Change{A: t.place(rows, cols), B: t.place(rows, cols), Out: t.place(1, 2)}
	t.b.Do(0, schedule.Map{Op: cell.Mul, Out: op.Out, A: op.Out, B: op.Out})
	return op
}

func change(v values, op schedule.Change) {
	each(op.A, func(i, j int) {
		a, apart, size := *v.at(op.A, i, j), v.at(op.Out, 0, 0), v.at(op.Out, 0, 1)
		*apart, *size = max(*apart, math.Abs(a-*v.at(op.B, i, j))), max(*size, math.Abs(a))
	})
}

// changes runs schedule.Change on values that are large, infinite or no number, among many that are small: runs
// keep the largest change, and none of a value that is not finite looks small.
func changes(t *testing.T, devices []device.Device) {
	const rows, cols = 61, 131
	for _, d := range devices {
		for _, odd := range []float64{0.5, -7, math.NaN(), math.Inf(1), math.Inf(-1)} {
			for in, name := range []string{"A", "B"} {
				got, err := changed(d, rows, cols, in, float32(odd))
				if err != nil {
					t.Fatal(err)
				}
				finite := got[0] <= math.MaxFloat32 && got[1] <= math.MaxFloat32
				if want := !math.IsNaN(odd) && !math.IsInf(odd, 0); finite != want {
					t.Errorf("%v: with %g in %s, %v is kept", d.Info().Name, odd, name, got)
				} else if want && got[0] != float32(math.Abs(odd)) {
					t.Errorf("%v: with %g in %s, %v is kept", d.Info().Name, odd, name, got)
				}
			}
		}
	}
}

// changed returns what two runs keep, the first with odd in A or in B, the second without.
func changed(d device.Device, rows, cols, in int, odd float32) ([2]float32, error) {
	b := schedule.NewBuilder(1)
	both := [2]*schedule.Matrix{b.Matrix("A", rows, cols+3), b.Matrix("B", rows, cols)}
	out := b.Matrix("out", 1, 2)
	b.Do(0, schedule.Change{A: both[0].All().Columns(2, cols), B: both[1].All(), Out: out.All()})
	s, err := b.Schedule()
	if err != nil {
		return [2]float32{}, err
	}
	p, err := d.Compile(s, nil)
	if err != nil {
		return [2]float32{}, err
	}
	defer p.Close()
	odds := make([]float32, both[in].Elements())
	odds[len(odds)-(1-in)-1] = odd // the last that counts
	var kept [2]float32
	err = errors.Join(p.Write(both[0], make([]float32, both[0].Elements())), p.Write(both[1], make([]float32, both[1].Elements())),
		p.Write(out, kept[:]), p.Write(both[in], odds), p.Prepare(), runOnce(p),
		p.Write(both[in], make([]float32, len(odds))), runOnce(p), p.Read(out, kept[:]))
	return kept, err
}

func runOnce(p device.Program) error {
	_, err := p.Run(1)
	return err
}
