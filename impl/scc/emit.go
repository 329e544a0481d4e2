package scc

import (
	"slices"

	"rnnbench/rnn/schedule"
)

// An emitter appends operations to a schedule and chains element-wise ones.
type emitter struct {
	to    *schedule.Builder
	fused bool
	ahead bool              // operations run once, before all runs
	maps  schedule.MapChain // not yet appended, since more may join
}

// do appends op. With fused, consecutive maps join one chain, within a step or over several.
func (e *emitter) do(op schedule.Op) {
	const most = 32 // in one kernel
	m, ok := op.(schedule.Map)
	if ok = ok && e.fused; ok && len(e.maps.Steps) < most && e.maps.Append(m) {
		return
	}
	e.flush()
	if !ok || !e.maps.Append(m) {
		e.emit(op)
	}
}

// flush appends the chain of maps.
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
