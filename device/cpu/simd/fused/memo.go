package fused

import (
	"sync"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
)

// A memo remembers what was made of programs: a schedule has many operations of few programs, and a
// program is translated more slowly than a small layer runs.
type memo[T any] struct {
	mu   sync.Mutex
	made map[programAt]T
}

// A programAt is a program by its place in memory, as nobody changes programs, and a level.
type programAt struct {
	level simd.Level
	first *cell.Instr
	n     int
}

// memoised is how many results a memo remembers. Few processes have as many programs.
const memoised = 1 << 10

// of returns what make makes of p.
func (m *memo[T]) of(l simd.Level, p cell.Program, make func() T) T {
	key := programAt{level: l, n: len(p)}
	if len(p) > 0 {
		key.first = &p[0]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.made[key]; ok {
		return v
	}
	v := make()
	if m.made == nil || len(m.made) == memoised {
		m.made = map[programAt]T{}
	}
	m.made[key] = v
	return v
}
