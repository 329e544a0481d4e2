package around

import (
	"os"
	"testing"

	"rnnbench/record"
)

// BenchmarkRead reads this machine's counters.
func BenchmarkRead(b *testing.B) {
	r := NewReader(os.DirFS("/"), record.Capture(record.Options{}).CPU)
	for b.Loop() {
		r.Read()
	}
}

// BenchmarkRuns looks for other runs on this machine.
func BenchmarkRuns(b *testing.B) {
	r := NewReader(os.DirFS("/"), record.Capture(record.Options{}).CPU)
	for b.Loop() {
		r.Runs()
	}
}
