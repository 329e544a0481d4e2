package experiments_test

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/record"
)

// TestWordsAlike: at either size, the points of hwang-train have equally many words a minibatch for
// every number of streams. Errors flow back through as many steps again.
func TestWordsAlike(t *testing.T) {
	e, err := experiments.Lookup("hwang-train")
	if err != nil {
		t.Fatal(err)
	}
	for size, words := range map[study.Size]int{study.Full: 1024, study.Quick: 256} {
		trainings := e.Trainings(size, gpu)
		for _, x := range trainings {
			for _, p := range x.Points {
				if p.Batch*p.Steps != words || p.History != p.Steps || x.Plan.Iterations%x.Plan.Every != 0 {
					t.Errorf("%v of %+v", p, x.Plan)
				}
			}
		}
		if !trainings[0].Plan.Beside || trainings[1].Plan.Beside {
			t.Error("the pass is not timed in turns with the technique alone")
		}
	}
}

// TestWordReport: speeds are medians without the first record. Losses are compared after equally
// many words, and times are those of the first record with so low a loss. Passes are timed in the
// training's turns.
func TestWordReport(t *testing.T) {
	recs := slices.DeleteFunc(planned(t, "hwang-train", cpu), func(r record.Record) bool {
		return r.Point.Cell != "lstm-c" || r.Point.Batch == 8 || r.Training.Repeat > 0
	})
	var list []record.Record
	for _, r := range recs {
		one := *r.Training
		r.Training, r.Stats = &one, stats(1)
		if one.Beside != nil {
			one.Beside = &record.Beside{Pairs: 3, Ratio: 2, Iteration: 1.1, Pass: 0.5, LeastIteration: 0.9, LeastPass: 0.5}
			if r.Seq < 3 { // of five records or ten
				one.Beside.Ratio = 3
			}
		}
		switch i := r.Seq; {
		case r.Impl.Label == "baseline":
			r.Stats = stats(12)
		case i == 1:
			r.Stats = stats(100) // cold
		case r.Point.Batch == 64 && i > 5: // this network is not finished
			continue
		case i == 7:
			r.Stats = stats(50) // another program came
		}
		if one.HeldOut != nil {
			one.HeldOut = &record.Score{Loss: 10 - float64(r.Seq)}
			if r.Point.Batch == 64 {
				one.HeldOut.Loss -= 0.5
			}
			one.Wall = 7 * float64(r.Seq)
		}
		list = append(list, r)
	}
	rep := report(t, "hwang-train", list, cpu)
	if len(rep.Tables) != 1 || len(rep.Tables[0].Rows) != 2 {
		t.Fatalf("%d tables", len(rep.Tables))
	}
	for i, want := range [][]string{
		{"1", "256", "21.3 words/s", "256 words/s", "12.0", "512 words/s", "200 %", "5.000", "35.0 s"},
		{"64", "4", "21.3 words/s", "256 words/s", "12.0", "512 words/s", "200 %", "4.500", "35.0 s"},
	} {
		var row []string
		for _, c := range rep.Tables[0].Rows[i] {
			row = append(row, c.Text)
		}
		if !slices.Equal(row, want) {
			t.Errorf("row %q, want %q", row, want)
		}
	}
	if s := about(rep, "one stream"); !strings.Contains(s, "12.0×") || !strings.Contains(s, "They agree") {
		t.Errorf("%q", s)
	}
	if s := about(rep, "held-out loss"); !strings.Contains(s, "range from 4.500 to 5.000 nats over N from 1 to 64. Each N was trained once") {
		t.Errorf("%q", s)
	}
	if s := about(rep, "in turns"); !strings.Contains(s, "takes 100.0 % more") || !strings.Contains(s, "times 80.0 %") || !strings.Contains(s, "at most 5 %: it is missed") {
		t.Errorf("%q", s)
	}
	if s := about(rep, "disturbed"); !strings.Contains(s, "up to 50.0× as long") {
		t.Errorf("%q", s)
	}
	if about(rep, "the curves of loss are ours") == "" {
		t.Error("the report does not say whose curves these are")
	}
}

// TestWordReportInPart: a network that was not evaluated does not count for the loss that all reach.
func TestWordReportInPart(t *testing.T) {
	for unknown, want := range map[int]string{0: ". All reach ", 8: ". All that were evaluated reach ", -1: ""} {
		var list []record.Record
		for _, r := range planned(t, "hwang-train", cpu) {
			if r.Training.Repeat > 0 {
				continue
			}
			one := *r.Training
			r.Training, r.Stats = &one, stats(1)
			if one.Wall = float64(r.Seq); one.HeldOut != nil {
				one.HeldOut = &record.Score{Loss: 10 - float64(r.Seq)}
			}
			if r.Point.Batch == unknown || unknown < 0 {
				one.HeldOut = nil
			}
			list = append(list, r)
		}
		rep := report(t, "hwang-train", list, cpu)
		s := about(rep, "held-out loss")
		if !strings.Contains(s, want) || (s == "") != (want == "") {
			t.Errorf("%d: %q", unknown, s)
		}
		var text strings.Builder
		for _, table := range rep.Tables {
			for _, c := range table.Columns {
				text.WriteString(c.Name + "\n")
			}
		}
		for _, wrong := range []string{"NaN", "Inf", " days"} {
			if strings.Contains(s+text.String(), wrong) {
				t.Errorf("%d: %s in %q, %q", unknown, wrong, s, &text)
			}
		}
	}
}

// TestWordSeeds: losses are means over seeds, and more is learnt where their intervals say so. Speeds are
// of the first seed.
func TestWordSeeds(t *testing.T) {
	for spread, says := range map[float64]string{0.01: "N = 64 clearly learns more", 2: "which learns more cannot be told"} {
		var list []record.Record
		for _, r := range planned(t, "hwang-train", cpu) {
			one := *r.Training
			r.Training, r.Stats = &one, stats(1+9*float64(one.Repeat))
			if one.HeldOut != nil {
				one.HeldOut = &record.Score{Loss: 10 - float64(r.Point.Batch)/64 + spread*float64(one.Repeat)}
			}
			list = append(list, r)
		}
		rep := report(t, "hwang-train", list, cpu)
		if s := about(rep, "means over 3 seeds"); !strings.Contains(s, says) || about(rep, "one seed") != "" {
			t.Errorf("seeds that differ by %v: %q", spread, s)
		}
		row := rep.Tables[0].Rows[2]
		if spread < 1 && (row[0].Text != "64" || row[7].Text != "9.010 (8.985 to 9.035)" || row[3].Text != "256 words/s") {
			t.Errorf("%+v", row)
		}
	}
}

func stats(seconds float64) *record.Stats {
	return &record.Stats{N: 1, Min: seconds, Q1: seconds, Median: seconds, Q3: seconds, Max: seconds, Mean: seconds, Level: 0.95, Stop: "max_rounds"}
}
