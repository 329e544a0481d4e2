package devicetest

import (
	"fmt"
	"testing"

	"rnnbench/device"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// scans compares recurrences over many steps, more than any block holds, with the evaluation. The
// results must have the same bits in every run.
func scans(t *testing.T, short bool, devices []device.Device) {
	sizes := [][3]int{ // steps, batch, hidden
		{5000, 1, 3}, {1, 2, 33}, {31, 3, 11}, {257, 1, 32}, {1023, 1, 33}, {513, 2, 16}, {2049, 1, 1}, {65, 1, 260}, {4099, 1, 32}, {140001, 1, 3},
	}
	if short {
		sizes = sizes[:5]
	}
	precisions := precisions(devices[0])
	for _, c := range []*cell.Cell{cell.Linear, cell.SRU, cell.LSLSTM.Core} {
		for i, size := range sizes {
			precision := precisions[i%len(precisions)]
			t.Run(fmt.Sprintf("%v/%v/%v", c, size, precision), func(t *testing.T) {
				w := evaluate(long(t, c, size, precision, true, 0), 1)
				for _, d := range devices {
					w.compare(t, d, []knob.Params{nil}, trials(d, 3))
				}
			})
		}
	}
}

// ScansWith checks scans of several cells on d with each of the settings.
func ScansWith(t *testing.T, d device.Device, settings ...knob.Params) {
	precisions, cells := precisions(d), []*cell.Cell{cell.RGLRU.Scanned, cell.SRU, cell.LSLSTM.Core, cell.MinGRU}
	if testing.Short() {
		cells = cells[:1]
	}
	for i, c := range cells {
		precision := precisions[i%len(precisions)]
		t.Run(fmt.Sprintf("%v/%v", c, precision), func(t *testing.T) {
			compare(t, d, long(t, c, [3]int{37, 3, 5}, precision, true, 0), 1, settings, 1)
		})
	}
}

// HoldScan checks a recurrence of size steps, batch and channels against the evaluation and, if it
// trains, also its gradient. The results must have the same bits in every run.
func HoldScan(t *testing.T, d device.Device, c *cell.Cell, size [3]int, precision schedule.Precision, train bool) {
	t.Helper()
	HoldScanWith(t, d, c, size, precision, train, nil)
}

// HoldScanWith is HoldScan with knobs.
func HoldScanWith(t *testing.T, d device.Device, c *cell.Cell, size [3]int, precision schedule.Precision, train bool, k knob.Params) {
	t.Helper()
	evaluate(long(t, c, size, precision, train, 0), 1).compare(t, d, []knob.Params{k}, trials(d, 3))
}

// HoldScanWithin is HoldScanWith over parts of matrices. They begin ahead steps after the first row
// and, in matrices of several vectors, one vector after the first column.
func HoldScanWithin(t *testing.T, d device.Device, c *cell.Cell, size [3]int, precision schedule.Precision, train bool, k knob.Params, ahead int) {
	t.Helper()
	evaluate(long(t, c, size, precision, train, ahead), 1).compare(t, d, []knob.Params{k}, trials(d, 3))
}

// long returns the schedule of a scan and, if it trains, of its gradient. The matrices are fresh
// or, if ahead is positive, parts of larger ones. Products in the preparation, which are never run,
// make the device store states and gradients in the precision.
func long(t *testing.T, c *cell.Cell, size [3]int, precision schedule.Precision, train bool, ahead int) *schedule.Schedule {
	steps, batch, hidden := size[0], size[1], size[2]
	b := schedule.NewBuilder(1)
	b.SetPrecision(precision)
	all := func(rows, vectors int) schedule.View { return b.Matrix("m", rows, vectors*hidden).All() }
	part := func(rows, vectors int) schedule.View {
		if ahead == 0 {
			return all(rows, vectors)
		}
		if vectors == 1 {
			return all(rows+ahead*batch, 1).Band(ahead*batch, rows)
		}
		return all(rows+ahead*batch, vectors+2).Band(ahead*batch, rows).Columns(hidden, vectors*hidden)
	}
	rows, gates := steps*batch, len(c.Gates)
	op := schedule.Scan{Sequence: schedule.Sequence{
		Cell: c, Train: train, Steps: steps, X: part(rows, gates), BX: all(1, gates),
	}}
	if train {
		op.Saved = part(rows, c.Saved)
	}
	if n := len(c.Peeps); n > 0 {
		op.Peep = all(1, n)
	}
	g := schedule.SequenceGrad{DOut: part(rows, 1), DX: part(rows, c.Gradients())}
	if n := c.Recurrent; n > 0 {
		op.R, op.BR = part(rows, n), all(1, n)
	}
	for range c.States {
		op.State = append(op.State, part(rows+batch, 1))
		g.Carry = append(g.Carry, all(batch, 1))
	}
	weights := b.Packed("packed", hidden, 1).All()
	b.Prepare(schedule.Pack{Src: all(1, 1), Dst: weights, Trans: true})
	for _, v := range []schedule.View{op.State[0], g.DX.Columns(0, hidden)} {
		b.Prepare(schedule.Gemm{A: v, B: weights, C: b.Matrix("product", v.Rows, 1).All()})
	}
	b.Do(0, op)
	if train {
		b.Do(0, schedule.ScanBackward{Sequence: op.Sequence, SequenceGrad: g})
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
