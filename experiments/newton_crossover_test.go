package experiments_test

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/record"
)

// crossover returns records of the full map on a GPU whose copies reach 4 TB/s. The serial kernel takes
// 400 ns a step, an iteration of Newton's method 32 bytes a channel and step. Each layer takes so many
// iterations; 0: it does not converge.
func crossover(t *testing.T, on study.Target, iterations func(record.Point) int) []record.Record {
	t.Helper()
	e, err := experiments.Lookup("newton-crossover")
	if err != nil {
		t.Fatal(err)
	}
	moved := func(p record.Point, n int) float64 { return 32 * float64(p.Batch*p.Hidden*p.Steps*n) }
	recs := withTimes(recordsOf(e.Parts(study.Full, on)), func(r record.Record) float64 {
		p := r.Point
		switch r.Impl.Label {
		case "newton":
			return 10e-6 + moved(p, iterations(p))/4e12
		case "serial kernel":
			return max(400e-9*float64(p.Steps), moved(p, 1)/4e12)
		case "step by step":
			return 4e-6 * float64(p.Steps)
		}
		return moved(p, 1) / 4e12
	})
	for i := range recs {
		r := &recs[i]
		if r.Impl.Label != "newton" {
			continue
		}
		n := iterations(r.Point)
		r.Work.Bytes = int64(moved(r.Point, n))
		r.Kernels = []record.Kernel{{Name: "scan", Launches: n}, {Name: "product", Launches: 1}}
		if r.Verify = (&record.Verify{Iterations: n, OK: true}); n == 0 {
			r.Verify = &record.Verify{Iterations: 32, Residual: 0.25}
			r.Status, r.Stats = record.NotConverged, nil
		}
	}
	return recs
}

// TestCrossover: where the serial kernel's latency and the bytes of iterations meet, findings, figure and
// prediction have the crossover.
func TestCrossover(t *testing.T) {
	on := gpu
	on.Copy, on.InGraph = 4e12, 2e-6
	rep := report(t, "newton-crossover", crossover(t, on, func(record.Point) int { return 4 }), on)
	for _, words := range []string{
		"of the most measured: 4096 of 262144 at 256 steps, 0 of 65536 at 512 steps, 4096 of 65536 at 1024 steps, 4096 of 16384 at 4096 steps, 4096 of 4096 at 16384 steps",
		"The answers take 4 iterations.",
		"At a copy's rate, 400 ns × 4.00 TB/s / (4 × 32 bytes) = 12500 channels, and fewer where launches, 10.0 µs in all, count; this names the faster at ",
		"over the serial kernel is 1510×",
	} {
		if about(rep, words) == "" {
			t.Errorf("no finding says %q: %q", words, rep.Findings)
		}
	}
	if s := about(rep, "converged, and is not timed"); s != "" {
		t.Errorf("all converge: %s", s)
	}
	if s := about(rep, "this names the faster at"); strings.Contains(s, " at 0 of") {
		t.Error(s)
	}
	claim := claimOn(t, rep, "Newton's method is up to 665 times")
	if claim.Outcome != study.Differs || !strings.Contains(claim.Here, "over launched steps") || !strings.Contains(claim.Why, "leaves up to") {
		t.Errorf("%+v", claim)
	}
	ch := rep.Figures[0].Figure.(*plots.Chart)
	marks := map[string]int{}
	for _, s := range ch.Panels[0].Series {
		marks[s.Label] = len(s.Points)
	}
	if marks["newton is faster"] == 0 || marks["the serial kernel is faster"] == 0 || len(marks) > 3 {
		t.Errorf("the map has %v", marks)
	}
	for _, g := range ch.Panels[0].Guides {
		if g.X0 > 1e5 && (g.Y0 < 12e3 || g.Y0 > 12.5e3) {
			t.Errorf("the predicted crossover of many steps is %+v, want 12,500 channels", g)
		}
	}
}

// TestUnconverged: a layer of which Newton's method does not find the answer has no time. The table says so,
// the map has a mark of its own, and no ratio counts it.
func TestUnconverged(t *testing.T) {
	recs := crossover(t, gpu, func(p record.Point) int {
		if p.Steps == 256 {
			return 0
		}
		return 8
	})
	rep := report(t, "newton-crossover", recs, gpu)
	if s := about(rep, "has not converged, and is not timed, at 9 of 41 points"); !strings.Contains(s, "1 × 8 × 256 (after 32 iterations the states still change by 0.25 of the largest)") {
		t.Errorf("%q", rep.Findings)
	}
	if s := about(rep, "as fast as the serial kernel"); !strings.Contains(s, "geometric mean of 32 points") {
		t.Error(s)
	}
	tab := rep.Tables[0]
	for _, row := range tab.Rows {
		if status := row[len(row)-1].Text; (status == "not converged") != (row[2].Text == "256") {
			t.Errorf("status %q of %v", status, row)
		}
	}
	if !slices.ContainsFunc(rep.Figures[0].Figure.(*plots.Chart).Panels[0].Series, func(s plots.Series) bool {
		return s.Label == "newton has not converged" && len(s.Points) == 9
	}) {
		t.Error("the map does not mark them")
	}
}

// TestGains: larger recurrent weights have a table of their own, which says where the method does not converge.
func TestGains(t *testing.T) {
	recs := crossover(t, gpu, func(p record.Point) int {
		switch p.Gain {
		case 1600:
			return 0
		case 400:
			return 7
		}
		return 3
	})
	rep := report(t, "newton-crossover", recs, gpu)
	if about(rep, "at 100 %: 3 iterations; at 400 %: 7 iterations; at 1600 %: not converged at 4 of 4 points.") == "" {
		t.Errorf("%q", rep.Findings)
	}
	rows := rep.Tables[2].Rows
	for _, row := range rows {
		if status := row[8].Text; (status == "not converged") != (row[3].Text == "1600 %") {
			t.Errorf("%v", row)
		}
	}
	if len(rows) != 16 || len(rep.Tables[0].Rows) != 41 {
		t.Errorf("%d layers with a gain, %d of the map", len(rows), len(rep.Tables[0].Rows))
	}
}

// TestCrossoverPoints: the full maps have about as many points as are planned, and the GPU's has all sizes
// that were measured before.
func TestCrossoverPoints(t *testing.T) {
	e, err := experiments.Lookup("newton-crossover")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(e.Parts(study.Full, cpu)[0].Points); n < 20 || n > 30 {
		t.Errorf("%d points on a CPU", n)
	}
	parts := e.Parts(study.Full, gpu)
	points := parts[0].Points
	if n := len(points); n < 35 || n > 45 || len(parts[1].Points) != n {
		t.Errorf("%d points on a GPU, %d scans", n, len(parts[1].Points))
	}
	for _, want := range [][3]int{{1, 256, 65536}, {1, 32, 262144}, {1, 8, 1 << 20}, {1, 1024, 16384}, {8, 2048, 4096}, {16, 768, 1024}, {64, 1024, 512}} {
		if !slices.ContainsFunc(points, func(p record.Point) bool { return [3]int{p.Batch, p.Hidden, p.Steps} == want }) {
			t.Errorf("there is no %v", want)
		}
	}
}
