package scan

import (
	"fmt"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// What of the pass is timed. All else is computed once, ahead of all runs.
const (
	whole        = iota // all of it
	forwardScan         // the scans of the forward pass
	backwardScan        // the scans of the gradient
	forwardCopy         // instead of either, a copy of as many bytes
	backwardCopy
)

// aloneKnob measures a device, not a technique, so a tuner does not turn it.
func aloneKnob() knob.Knob {
	return knob.Knob{Name: "alone", Values: []int{whole}, Min: whole, Max: backwardCopy,
		Doc: "time the whole pass (0), its forward (1) or backward scan (2) alone, or a copy of as many bytes as 1 (3) or 2 (4)"}
}

// canBeAlone declines what cannot be timed alone. Blocks and layers share memory, so only the
// last of several would find its own values in a later run.
func (n *network) canBeAlone() error {
	backward := n.alone == backwardScan || n.alone == backwardCopy
	switch {
	case n.Layers > 1 || len(n.Batches.Runs(0, n.Steps, n.block)) > 1:
		return fmt.Errorf("%w: alone=%d takes one layer and inputbatch=0", schedule.ErrKnob, n.alone)
	case backward && n.Pass != rnn.Train:
		return fmt.Errorf("%w: alone=%d is of training", schedule.ErrKnob, n.alone)
	case n.Precision != rnn.FP32:
		return fmt.Errorf("%w: alone=%d is of fp32, in which every value has 4 bytes", schedule.ErrKnob, n.alone)
	}
	n.Part = true
	return nil
}

// do appends op to what is timed or, where scans are timed alone, to what is computed ahead.
func (n *network) do(op schedule.Op) {
	if n.alone == whole {
		n.Do(0, op)
		return
	}
	n.Prepare(op)
	switch op := op.(type) {
	case schedule.Scan:
		n.timed(op, n.alone == forwardScan, n.alone == forwardCopy)
	case schedule.ScanBackward:
		if n.alone == backwardScan { // each run begins with none
			for _, v := range op.Carry {
				n.Do(0, schedule.Map{Op: cell.Zero, Out: v})
			}
		}
		n.timed(op, n.alone == backwardScan, n.alone == backwardCopy)
	}
}

// timed has op run each time, or counts the values that it reads and writes.
func (n *network) timed(op schedule.Op, run, count bool) {
	if run {
		n.Do(0, op)
	}
	if count {
		n.values += schedule.Bytes(op) / 4
	}
}

// copyColumns are those of the matrices that are copied: whole lines of memory, whatever the scan's channels.
const copyColumns = 64

// copyAsMuch copies as many values as the scans read and write: half of them are read.
func (n *network) copyAsMuch() {
	if rows := (int(n.values)/2 + copyColumns - 1) / copyColumns; rows > 0 {
		from, to := n.Matrix("from", rows, copyColumns), n.Matrix("to", rows, copyColumns)
		n.Do(0, schedule.Map{Op: cell.Copy, Out: to.All(), A: from.All()})
	}
}
