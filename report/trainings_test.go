package report

import (
	"strings"
	"testing"
	"time"

	"rnnbench/record"
)

// TestTraining: a report of trainings has loss curves, and a technique's time is that of all its
// iterations, not of its fastest record.
func TestTraining(t *testing.T) {
	first := grid(1, 1, 1, 1)[0]
	first.Point.Pass = "train"
	var recs []record.Record
	for i, name := range []string{"naive", "persistent"} {
		for k := range 20 {
			r := first
			r.Impl.Name, r.Impl.Label, r.Seq, r.Time = name, name, 20*i+k, time.Unix(int64(20*i+k), 0)
			times := []float64{1e-3 * float64(2-i), 1e-3 * float64(2-i)}
			if k == 7 { // one lucky record
				times = []float64{1e-6, 1e-6}
			}
			s, _ := record.Summarize(times, 0)
			r.Samples, r.Stats = &record.Samples{Wall: times, Iters: []int{1, 1}}, &s
			r.Training = &record.Training{Iterations: 10 * (k + 1), Wall: float64(k + 1), Loss: 3 - 0.1*float64(k), Data: "lines", Optimizer: "sgd"}
			recs = append(recs, r)
		}
	}
	s := set("trained", recs)
	text := pageOf(t, []record.Set{s}, s.Records)
	for _, want := range []string{"training</h2>", "Loss of the minibatch against seconds of training", ">persistent</td>", "1.00 ms", "2.00×"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	table := text[strings.Index(text, "Fastest at each point"):strings.Index(text, "<svg")]
	if strings.Contains(table, "1.00 µs") {
		t.Error("the fastest record stands for its technique")
	}
}
