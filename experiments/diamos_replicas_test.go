package experiments_test

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/record"
)

// replicaRecords are the records of one replica and of two, whose iterations take so many seconds, and
// five times as long before the first record.
func replicaRecords(t *testing.T, on study.Target, one, two float64) (recs []record.Record) {
	e, err := experiments.Lookup("diamos-fig5")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range e.Trainings(study.Full, on) {
		seconds := one
		if x.Plan.Replicas == 2 {
			seconds = two
		} else if x.Plan.Replicas != 1 {
			continue
		}
		for i := range x.Plan.Iterations / x.Plan.Every {
			r := recordsOf([]study.Part{x.Part})[0]
			wall := seconds * (1 + 0.001*float64(i%5))
			if i == 0 {
				wall *= 5
			}
			r.Seq, r.Stats = len(recs)+1, stats(wall)
			r.Samples = &record.Samples{Iters: []int{x.Plan.Every}, Wall: []float64{wall}, Device: []float64{}, Clock: []float64{}}
			r.Training = &record.Training{Iterations: (i + 1) * x.Plan.Every, Replicas: x.Plan.Replicas}
			recs = append(recs, r)
		}
	}
	return recs
}

// TestReplicasVerdict: what is said of replicas follows from the interval of their speed. Of GPUs, the
// paper says that they scale nearly linearly. Older records have one time after the first iterations.
func TestReplicasVerdict(t *testing.T) {
	const claim = "persistent kernels scale nearly linearly"
	for _, c := range []struct {
		two  float64
		want study.Outcome
		says string
	}{
		{0.55, study.Agrees, "of linear scaling. They agree."},
		{0.9, study.Differs, "of linear scaling. They disagree"},
		{0.667, study.CannotTell, "the interval covers 0.75"},
	} {
		rep := report(t, "diamos-fig5", replicaRecords(t, gpu, 1, c.two), gpu)
		if got := outcomes(rep, claim); !slices.Equal(got, []study.Outcome{c.want}) {
			t.Errorf("two GPUs take %v of the time: %v, want %s", c.two, got, c.want)
		}
		if s := about(rep, "2 replicas train"); !strings.Contains(s, c.says) {
			t.Errorf("two GPUs take %v of the time: %q", c.two, s)
		}
	}
	for two, says := range map[float64]string{0.32: "clearly faster", 1: "cannot be told, since the interval covers 1", 1.3: "clearly slower"} {
		rep := report(t, "diamos-fig5", replicaRecords(t, cpu, 1, two), cpu)
		if s := about(rep, "2 replicas train"); !strings.Contains(s, says) || outcomes(rep, claim) != nil {
			t.Errorf("two parts of the cores take %v of the time: %q", two, s)
		}
	}
	old := slices.DeleteFunc(replicaRecords(t, gpu, 1, 0.55), func(r record.Record) bool { return r.Training.Iterations > 6 })
	if got := outcomes(report(t, "diamos-fig5", old, gpu), claim); !slices.Equal(got, []study.Outcome{study.CannotTell}) {
		t.Errorf("of one time each: %v", got)
	}
}
