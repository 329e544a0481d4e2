package lower

import (
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/schedule"
)

// Splitting a factor into halves needs its largest absolute value. That value lies in an absmax
// cache (scales.cu); each stream has several slots for such caches. A cache is valid for later
// products of the stream, until something writes to the factor.

// An absmaxRoom says where a stream has its slots.
type absmaxRoom struct {
	at    int64
	slots int
	sums  int64 // where the kernel that finds a largest value leaves partial sums of rows
}

// The size of a slot, and how many a stream has at most.
const (
	absmaxSlotBytes = (gemm.AbsmaxBytes + launch.Alignment - 1) / launch.Alignment * launch.Alignment
	absmaxSlots     = 64
)

// An absmaxKnown is a factor whose largest value is known, and the slot that holds it.
type absmaxKnown struct {
	view         schedule.View
	stream, slot int
}

// absmax returns the address of v's absmax cache, and the commands that find v's largest value.
// There are no commands if the value is known, or if the copy of v finds it (copied).
func (e *emitter) absmax(v schedule.View, stream int, copied bool) (driver.Pointer, []launch.Command) {
	room, used := e.lowering.absmax[stream], 0
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

// sumAhead finds the next node on the stream that sums v's rows, if nothing writes to v before it;
// 0: none. The kernel that finds v's largest value can form its partial sums. There is at most one
// such node. Nodes inside a chain have none, since a chain adds up its own partial sums at its end.
func (e *emitter) sumAhead(v schedule.View, stream, node int) (int, schedule.SumRows) {
	const far = 32
	if _, ok := e.chained[node]; ok {
		return 0, schedule.SumRows{}
	}
	for i := node + 1; node >= 0 && i < min(node+far, len(e.lowering.schedule.Nodes)); i++ {
		n := e.lowering.schedule.Nodes[i]
		if _, ok := n.Op.(schedule.Pause); ok {
			break
		}
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

// sums returns the address of these partial sums of rows.
func (e *emitter) sums(stream int) driver.Pointer {
	return e.Base + driver.Pointer(e.lowering.absmax[stream].sums)
}

func (e *emitter) slot(room absmaxRoom, i int) driver.Pointer {
	return e.Base + driver.Pointer(room.at+int64(i)*absmaxSlotBytes)
}

// forget drops the largest values of factors that op writes to.
func (e *emitter) forget(op schedule.Op) {
	for _, v := range op.Writes() {
		e.known = slices.DeleteFunc(e.known, func(t absmaxKnown) bool { return t.view.Overlaps(v) })
	}
}
