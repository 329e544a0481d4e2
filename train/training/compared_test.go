package training_test

import (
	"path/filepath"
	"slices"
	"testing"

	"rnnbench/record"
)

// TestCompared: a training that is compared with double precision records the loss of each
// iteration beside the allowed ones. These are the same for every technique. It keeps no
// checkpoint.
func TestCompared(t *testing.T) {
	list := networks(12, "naive", "cudnnstyle")
	for i := range list {
		list[i].Training.Reference, list[i].Training.Batches, list[i].Training.Every = true, 0, 12
	}
	j := newJob(t, "", list)
	if err := j.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	recs := read(t, j)
	if len(recs) != 2 {
		t.Fatalf("%d records", len(recs))
	}
	for _, r := range recs {
		apart := r.Training.Apart()
		if r.Status != record.OK || len(apart) != 12 || !(slices.Max(apart) < 1) {
			t.Fatalf("%s is %s, apart by %v", r.Impl.Label, r.Status, apart)
		}
		if c := r.Training.Comparison; c.Curve[11] != r.Training.Loss || !slices.Equal(c.Loss, recs[0].Training.Comparison.Loss) {
			t.Errorf("%s: %+v", r.Impl.Label, c)
		}
		r.Training.Comparison.Curve[3] *= 1.001
		if far := r.Training.Apart()[3]; !(far > 1) {
			t.Errorf("%s: a loss that is 0.1 %% too large is %g of what is allowed", r.Impl.Label, far)
		}
	}
	if found, err := filepath.Glob(filepath.Join(j.Run.Dir(), "checkpoint*")); err != nil || len(found) > 0 {
		t.Error(found, err)
	}
}
