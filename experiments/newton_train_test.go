package experiments_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// additions returns ten records of each network of newton-train at the full size. A minibatch takes Newton's
// method four times as long as the other techniques, and its iterations grow after minibatch 700.
func additions(t *testing.T) []record.Record {
	t.Helper()
	e, err := experiments.Lookup("newton-train")
	if err != nil {
		t.Fatal(err)
	}
	var recs []record.Record
	for _, x := range e.Trainings(study.Full, gpu) {
		for _, r := range recordsOf([]study.Part{x.Part}) {
			each := 1e-3
			if r.Impl.Label == "newton" {
				each = 4e-3
			}
			for i := 1; i <= 10; i++ {
				n := i * x.Plan.Iterations / 10
				one := r
				one.Seq = i
				one.Training = &record.Training{Iterations: n, Wall: each * float64(n), Loss: 9, MeanLoss: 1 / float64(i), MeanOf: 16, Optimizer: x.Plan.Optimizer, Data: x.Plan.Data}
				if r.Impl.Label == "newton" {
					one.Training.MeanLoss *= 1 + 1e-6*float64(i)
					one.Training.Convergence = &record.Convergence{Residual: 2e-7, Taken: []record.Taken{{Iterations: 3}, {After: 700, Iterations: 6}}}
				}
				recs = append(recs, one)
			}
		}
	}
	return recs
}

// TestNewtonTrain: the report compares times and losses minibatch by minibatch, and says when iterations grew.
func TestNewtonTrain(t *testing.T) {
	rep := report(t, "newton-train", additions(t), gpu)
	for _, words := range []string{
		"For 2048 minibatches, Newton's method takes 8.19 s and the serial kernel 2.05 s: Newton's method is 0.25 times as fast",
		"differ by at most 1e-05 times the loss, after minibatch 2048, over 10 records",
		"begins with 3 iterations for each minibatch, and takes 6 after minibatch 700. At the last check the states changed by 2e-07 of the largest.",
		"gru-diag by serial kernel after 2.05 s (2048 minibatches)",
		"Only the last of 4096 steps asks for the sum",
	} {
		if about(rep, words) == "" {
			t.Errorf("no finding says %q: %q", words, rep.Findings)
		}
	}
	if s := about(rep, "does not converge"); s != "" {
		t.Error(s)
	}
	tab := rep.Tables[0]
	if row := tab.Rows[0]; row[0].Text != "gru-diag" || row[6].Text != "3, then 6" || len(tab.Rows) != 4 || len(row) != 7 {
		t.Errorf("the table has %v", tab.Rows)
	}
	var lines []string
	for _, s := range rep.Figures[0].Figure.(*plots.Chart).Panels[0].Series {
		lines = append(lines, s.Label)
		if y := s.Points[0].Y; math.Abs(y-1) > 1e-5 {
			t.Errorf("%s begins at %g, not at the mean loss", s.Label, y)
		}
	}
	slices.Sort(lines)
	if want := []string{"gilr by scan", "gru-diag by newton", "gru-diag by serial kernel", "ls-lstm by scan"}; !slices.Equal(lines, want) {
		t.Errorf("the figure has %q, want %q", lines, want)
	}
}

// TestNewtonTrainEnds: a training that Newton's method cannot go on with is compared as far as it came, or
// named alone if its first minibatch does not converge.
func TestNewtonTrainEnds(t *testing.T) {
	for _, came := range []int{0, 4} {
		var recs []record.Record
		n := 0
		for _, r := range additions(t) {
			if r.Impl.Label != "newton" {
				recs = append(recs, r)
				continue
			}
			if n++; n <= came {
				recs = append(recs, r)
			}
			if n == came+1 {
				why := "after 32 iterations on a minibatch the states still change by 0.25 of the largest"
				r.Status, r.Stats, r.Reason = record.NotConverged, nil, &why
				r.Training = &record.Training{Iterations: 200 * came, Optimizer: r.Training.Optimizer, Data: r.Training.Data}
				if came > 0 {
					r.Training.Convergence = &record.Convergence{Residual: 0.25, Taken: []record.Taken{{Iterations: 3}, {After: 700, Iterations: 32}}}
				}
				recs = append(recs, r)
			}
		}
		rep := report(t, "newton-train", recs, gpu)
		words := map[int]string{0: "ends after 0 minibatches, since it does not converge: after 32 iterations", 4: "ends after 800 minibatches, since it does not converge: after 32 iterations"}[came]
		if about(rep, words) == "" {
			t.Errorf("%d: %q", came, rep.Findings)
		}
		if s := about(rep, "times as fast"); (s != "") != (came > 0) || came > 0 && !strings.Contains(s, "For 819 minibatches") {
			t.Errorf("%d: %q", came, s)
		}
		row := rep.Tables[0].Rows[slices.IndexFunc(rep.Tables[0].Rows, func(x []table.Cell) bool { return x[1].Text == "newton" })]
		if row[7].Text != "not converged" {
			t.Errorf("%d: %v", came, row)
		}
	}
}

// TestNewtonTrainPlans: all networks are trained alike, and a GPU checks Newton's method at each record.
func TestNewtonTrainPlans(t *testing.T) {
	e, err := experiments.Lookup("newton-train")
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []study.Size{study.Quick, study.Full} {
		for _, on := range []study.Target{cpu, gpu} {
			all := e.Trainings(size, on)
			for _, x := range all {
				if x.Plan != all[0].Plan || x.Plan.Every%16 != 0 || x.Plan.Time != 0 || x.Plan.Iterations%x.Plan.Every != 0 {
					t.Errorf("%+v", x.Plan)
				}
			}
		}
	}
}
