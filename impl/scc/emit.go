package scc

import (
	"slices"

	"rnnbench/rnn/schedule"
)

// An emitter appends operations to a schedule and joins element-wise ones.
type emitter struct {
	to    *schedule.Builder
	fused bool
	ahead bool              // operations are run ahead of all runs
	maps  schedule.MapChain // that wait for more
}

// do appends op, a map to those that run in one go, of the same step or of several.
func (e *emitter) do(op schedule.Op) {
	const most = 32 // of a kernel
	m, ok := op.(schedule.Map)
	if ok = ok && e.fused; ok && len(e.maps.Steps) < most && e.maps.Append(m) {
		return
	}
	e.flush()
	if !ok || !e.maps.Append(m) {
		e.emit(op)
	}
}

// flush appends the maps that wait for more.
func (e *emitter) flush() {
	switch s := e.maps.Steps; len(s) {
	case 0:
	case 1:
		e.emit(s[0])
	default:
		e.emit(schedule.MapChain{Steps: slices.Clone(s)})
	}
	e.maps.Steps = e.maps.Steps[:0]
}

func (e *emitter) emit(op schedule.Op) {
	if e.ahead {
		e.to.Prepare(op)
	} else {
		e.to.Do(0, op)
	}
}
