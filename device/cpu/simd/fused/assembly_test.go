package fused

import (
	"slices"
	"testing"

	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
)

// TestAssemblyIsOfTodaysPrograms compares the committed assembly of all levels with the programs
// that package catalog lists. It fails if a program was changed without make generate.
func TestAssemblyIsOfTodaysPrograms(t *testing.T) {
	if kernelTable == nil {
		t.Skip("there is no assembly")
	}
	upToDate(t, "kernel", kernelTable, catalog.Kernels())
	upToDate(t, "loop", loopTable, catalog.Loops())
	upToDate(t, "recurrence", recurrenceTable, catalog.Recurrences())
}

func upToDate[F any](t *testing.T, kind string, all table[F], entries []catalog.Entry) {
	t.Helper()
	for _, l := range []simd.Level{simd.AVX2, simd.AVX512} {
		for _, e := range entries {
			switch r, ok := all[l][e.Key()]; {
			case !ok:
				t.Errorf("%v: there is no %s of %v: run make generate", l, kind, e.Key())
			case r.hash != catalog.Hash(e.Program):
				t.Errorf("%v: the %s of %v is of another program: run make generate", l, kind, e.Key())
			}
		}
		for k := range all[l] {
			if !slices.ContainsFunc(entries, func(e catalog.Entry) bool { return e.Key() == k }) {
				t.Errorf("%v: there is a %s of %v, which is not listed: run make generate", l, kind, k)
			}
		}
	}
}

// TestListedProgramsRunAssembly: every listed program has assembly on every vector level of this
// machine.
func TestListedProgramsRunAssembly(t *testing.T) {
	if kernelTable == nil {
		t.Skip("there is no assembly")
	}
	for l := simd.AVX2; l <= simd.Detect().Base(); l++ {
		for _, e := range catalog.Kernels() {
			if !New(l, e.Cell, e.Pass).Assembled() {
				t.Errorf("%v: kernel %v is interpreted", l, e.Key())
			}
		}
		for _, e := range catalog.Loops() {
			if !NewLoop(l, e.Cell, e.Pass).Assembled() {
				t.Errorf("%v: loop %v is interpreted", l, e.Key())
			}
		}
		for _, e := range catalog.Recurrences() {
			if k := NewRecurrence(l, e.Cell, e.Pass, 1); k == nil || k.Alone() {
				t.Errorf("%v: recurrence %v is missing", l, e.Key())
			}
		}
	}
}

// TestChangedProgramLeavesAssembly: a cell has no assembly if it shares the name with another cell, but
// not the program. It has that of another cell with its program.
func TestChangedProgramLeavesAssembly(t *testing.T) {
	changed := *cell.GILR
	more := func(p cell.Program) cell.Program {
		return append(slices.Clone(p), cell.Instr{Op: cell.Neg, Out: p[len(p)-1].Out, A: p[len(p)-1].Out})
	}
	changed.Forward = more(changed.Forward)
	recurrence := *changed.Recurrence
	recurrence.Compose = more(recurrence.Compose)
	changed.Recurrence = &recurrence
	gru := *cell.GRU
	gru.Inference = more(gru.Inference)
	renamed := *cell.GRU
	renamed.Name = "the same cell from a file"
	for l := simd.Generic; l <= simd.Detect().Base(); l++ {
		if New(l, &changed, Forward).Assembled() || NewLoop(l, &changed, Compose).Assembled() || assembled(NewRecurrence(l, &gru, Inference, 1)) {
			t.Errorf("%v: a changed program runs the assembly of what it was", l)
		}
		has := l > simd.Generic && kernelTable != nil
		if New(l, &renamed, Forward).Assembled() != has || assembled(NewRecurrence(l, &renamed, Forward, 1)) != has {
			t.Errorf("%v: a cell with the program of another one: want assembly %v", l, has)
		}
		if New(l, &changed, Backward).Assembled() != has || NewLoop(l, &changed, Inference).Assembled() != has {
			t.Errorf("%v: programs that were not changed: want assembly %v", l, has)
		}
	}
}

func assembled(k *Recurrence) bool { return k != nil && !k.Alone() }
