package scan

import (
	"fmt"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Values of the knob alone: the part of the pass that is timed. All else is computed once, before
// all runs.
const (
	whole        = iota // all of it
	forwardScan         // the scans of the forward pass
	backwardScan        // the scans of the gradient
	forwardCopy         // a copy of as many bytes as the forward scans move
	backwardCopy
)

// aloneKnob measures a device, not a technique, so a tuner does not turn it.
func aloneKnob() knob.Knob {
	return knob.Knob{Name: "alone", Values: []int{whole}, Min: whole, Max: backwardCopy, Internal: true,
		Doc: "time the whole pass (0), its forward (1) or backward scan (2) alone, or a copy of as many bytes as 1 (3) or 2 (4)"}
}

// declineAlone declines problems whose scans cannot be timed alone. Blocks and layers share memory,
// so only the last of several would find its own values in a later run.
func (n *network) declineAlone() error {
	backward := n.alone == backwardScan || n.alone == backwardCopy
	switch {
	case n.Layers > 1 || len(n.Batches.Runs(0, n.Steps, n.block)) > 1:
		return fmt.Errorf("%w: alone=%d needs one layer and inputbatch=0", schedule.ErrKnob, n.alone)
	case backward && n.Pass != rnn.Train:
		return fmt.Errorf("%w: alone=%d needs training", schedule.ErrKnob, n.alone)
	case n.Precision != rnn.FP32:
		return fmt.Errorf("%w: alone=%d needs fp32, in which every value has 4 bytes", schedule.ErrKnob, n.alone)
	}
	n.Part = true
	return nil
}

// do appends op to the pass. If scans are timed alone, op is computed ahead instead.
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
		if n.alone == backwardScan { // each run begins with zeros
			for _, v := range op.Carry {
				n.Do(0, schedule.Map{Op: cell.Zero, Out: v})
			}
		}
		n.timed(op, n.alone == backwardScan, n.alone == backwardCopy)
	}
}

// timed runs op in each pass, or counts the values that op reads and writes.
func (n *network) timed(op schedule.Op, run, count bool) {
	if run {
		n.Do(0, op)
	}
	if count {
		n.values += schedule.Bytes(op) / 4
	}
}

// copyColumns is the width of the copied matrices: whole cache lines, whatever the scan's channels.
const copyColumns = 64

// copyAsMuch copies half as many values as the scans read and write: a copy reads and writes each.
func (n *network) copyAsMuch() {
	if rows := (int(n.values)/2 + copyColumns - 1) / copyColumns; rows > 0 {
		from, to := n.Matrix("from", rows, copyColumns), n.Matrix("to", rows, copyColumns)
		n.Do(0, schedule.Map{Op: cell.Copy, Out: to.All(), A: from.All()})
	}
}
