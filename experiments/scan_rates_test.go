package experiments_test

import (
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
)

// TestScanShapes: on a GPU the quick size has forty shapes of odd sizes, of which each pass moves 64 MB at least.
func TestScanShapes(t *testing.T) {
	e, err := experiments.Lookup("scan-rates")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range e.Parts(study.Quick, gpu) {
		odd := 0
		for _, p := range part.Points {
			if p.Hidden%2 == 0 {
				continue
			}
			if odd++; p.Batch%2 == 0 || p.Steps%2 == 0 || 12*p.Batch*p.Hidden*p.Steps < 64e6 {
				t.Errorf("%+v", p)
			}
		}
		if odd != 40 {
			t.Errorf("%d odd shapes of %s, want 40", odd, part.Points[0].Pass)
		}
	}
}
