package scan_test

import (
	"testing"

	"rnnbench/impl/scan"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// TestDefaultBlock: by default a CPU scans blocks of 512 rows, whose products stay in its caches. A
// GPU scans all steps at once, or as many as memory holds.
func TestDefaultBlock(t *testing.T) {
	for _, test := range []struct {
		steps, batch, hidden int
		cpu, gpu             int
	}{
		{2000, 4, 256, 128, 0},
		{100, 4, 256, 100, 100},
		{1 << 24, 1, 256, 512, 1 << 20},
		{1 << 20, 4096, 1024, 1, 64},
	} {
		p := rnn.Problem{Cell: cell.GILR, Input: 1, Hidden: test.hidden, Layers: 1, Batch: test.batch, Steps: test.steps, Pass: rnn.Train}
		for launched, want := range map[bool]int{false: test.cpu, true: test.gpu} {
			k := rnn.KnobsOf(scan.Technique{}, p, launched)[0]
			got, seen := k.Values[0], map[int]bool{}
			for _, v := range k.Values {
				if seen[v] {
					t.Errorf("%v: %d is offered twice: %v", p, v, k.Values)
				}
				seen[v] = true
			}
			if got != want {
				t.Errorf("%v launched %v: %d steps, want %d", p, launched, got, want)
			}
		}
	}
}
