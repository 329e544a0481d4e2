package record

import "testing"

// TestKeyOfTraining: the keys of one network's records differ by iterations. Another number of replicas
// or another repeat is another network.
func TestKeyOfTraining(t *testing.T) {
	keys := map[string]bool{}
	for _, training := range []*Training{nil, {Iterations: 3}, {Iterations: 6}, {Iterations: 6, Replicas: 1}, {Iterations: 6, Replicas: 2}, {Iterations: 6, Data: "copy"}, {Iterations: 6, Repeat: 1}} {
		r := sample(1)
		r.Training = training
		keys[r.Key()] = true
	}
	if len(keys) != 7 {
		t.Errorf("seven records have %d keys", len(keys))
	}
}

// TestWholeTraining: the time of a training is that of all its iterations, not of the last few, and not
// of another network's.
func TestWholeTraining(t *testing.T) {
	var recs []Record
	for _, r := range []struct {
		iterations int
		seconds    float64
		data       string
	}{{10, 2, "copy"}, {20, 3, "copy"}, {30, 9, "copy"}, {30, 1, "text"}, {40, 50, "copy"}} {
		a := sample(1)
		a.Training = &Training{Iterations: r.iterations, Data: r.data}
		a.Samples = &Samples{Iters: []int{10}, Wall: []float64{r.seconds}}
		a.Stats = &Stats{N: 1, Median: r.seconds, Stop: "max_rounds"}
		a.Work.Flops = 6
		recs = append(recs, a)
	}
	got := WholeTraining(recs[2], recs)
	if got.Seconds() != 3 || got.Rate.Flops != 2 || got.Stats.N != 3 || got.Stats.Stop != "max_rounds" {
		t.Errorf("a training takes %v s an iteration of %d samples, at %v FLOP/s", got.Seconds(), got.Stats.N, got.Rate.Flops)
	}
	if recs[2].Seconds() != 9 {
		t.Error("the record of the last iterations was changed")
	}
	recs[3].Training = nil
	if got := WholeTraining(recs[3], recs); got.Seconds() != 1 {
		t.Error("a record that is of no training was changed")
	}
}
