package lower

import (
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/schedule"
)

// An absmaxRoom is where a stream has the tails of factors that are split with a product (scales.cu):
// what was found of one holds for later products of the stream until something is written to it.
type absmaxRoom struct {
	at    int64
	slots int
	sums  int64 // of parts of a factor's rows
}

// slotBytes is what a tail takes, and mostSlots how many a stream has at most.
const (
	absmaxSlotBytes = (gemm.AbsmaxBytes + launch.Alignment - 1) / launch.Alignment * launch.Alignment
	absmaxSlots     = 64
)

// An absmaxKnown is a factor whose largest value is known, in a slot of a stream.
type absmaxKnown struct {
	view         schedule.View
	stream, slot int
}

// absmax is where v's is on a stream, and what finds its largest value unless that is known or
// found by who copies v.
func (e *emitter) absmax(v schedule.View, stream int, copied bool) (driver.Pointer, []launch.Command) {
	room, used := e.plan.absmax[stream], 0
	oldest := -1
	for i, t := range e.known {
		if t.stream != stream {
			continue
		}
		if t.view == v {
			e.known = append(slices.Delete(e.known, i, i+1), t)
			return e.slot(room, t.slot), nil
		}
		if used++; oldest < 0 {
			oldest = i
		}
	}
	slot := 0
	if used == room.slots {
		slot = e.known[oldest].slot
		e.known = slices.Delete(e.known, oldest, oldest+1)
	} else {
		for slices.ContainsFunc(e.known, func(t absmaxKnown) bool { return t.stream == stream && t.slot == slot }) {
			slot++
		}
	}
	e.known = append(e.known, absmaxKnown{view: v, stream: stream, slot: slot})
	at := e.slot(room, slot)
	if copied {
		return at, nil
	}
	if i, op := e.sumAhead(v, stream, e.now); i > 0 {
		e.summed[i] = true
		return at, []launch.Command{pointwise.PartSums(e.Target, op, e.sums(stream), at, gemm.Scales())}
	}
	return at, []launch.Command{gemm.Largest(e.Target, v, at)}
}

// sumAhead is the sum of v's rows that is the next one on a stream behind a node, if nothing is written to v
// until then, which can be begun by who looks for v's largest value. At most one is begun, none while a chain goes on, since
// the parts of one that is among it are added up at its end.
func (e *emitter) sumAhead(v schedule.View, stream, node int) (int, schedule.SumRows) {
	const far = 32
	if _, ok := e.chained[node]; ok {
		return 0, schedule.SumRows{}
	}
	for i := node + 1; node >= 0 && i < min(node+far, len(e.plan.schedule.Nodes)); i++ {
		n := e.plan.schedule.Nodes[i]
		if op, ok := n.Op.(schedule.SumRows); ok && n.Stream%launch.MaxStreams == stream {
			parts := pointwise.SumParts(op, e.Properties)
			if op.A != v || e.summed[i] || parts == 1 || parts*pointwise.SumBlocks(v) > gemm.AbsmaxParts {
				break
			}
			return i, op
		}
		if slices.ContainsFunc(n.Op.Writes(), v.Overlaps) {
			break
		}
	}
	return 0, schedule.SumRows{}
}

// sums is where the sums of parts of a factor's rows are that are begun ahead.
func (e *emitter) sums(stream int) driver.Pointer {
	return e.Base + driver.Pointer(e.plan.absmax[stream].sums)
}

func (e *emitter) slot(room absmaxRoom, i int) driver.Pointer {
	return e.Base + driver.Pointer(room.at+int64(i)*absmaxSlotBytes)
}

// forget drops what is known of factors that op writes to.
func (e *emitter) forget(op schedule.Op) {
	for _, v := range op.Writes() {
		e.known = slices.DeleteFunc(e.known, func(t absmaxKnown) bool { return t.view.Overlaps(v) })
	}
}
