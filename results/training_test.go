package results

import "testing"

// TestKeyOfTraining: records of one network differ by iterations, and those of several numbers of
// replicas are of several networks.
func TestKeyOfTraining(t *testing.T) {
	keys := map[string]bool{}
	for _, training := range []*Training{nil, {Iterations: 3}, {Iterations: 6}, {Iterations: 6, Replicas: 1}, {Iterations: 6, Replicas: 2}, {Iterations: 6, Data: "copy"}} {
		r := sample(1)
		r.Training = training
		keys[r.Key()] = true
	}
	if len(keys) != 6 {
		t.Errorf("six records have %d keys", len(keys))
	}
}
