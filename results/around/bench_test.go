package around

import (
	"os"
	"testing"

	"rnnbench/results"
)

// BenchmarkRead reads this machine's counters.
func BenchmarkRead(b *testing.B) {
	r := NewReader(os.DirFS("/"), results.Capture(results.Options{}).CPU)
	for b.Loop() {
		r.Read()
	}
}

// BenchmarkRuns looks for other runs on this machine.
func BenchmarkRuns(b *testing.B) {
	r := NewReader(os.DirFS("/"), results.Capture(results.Options{}).CPU)
	for b.Loop() {
		r.Runs()
	}
}
