package experiments_test

import (
	"math/rand"
	"regexp"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/record"
)

// noNumber matches NaN, infinity, and a duration that was made of one.
var noNumber = regexp.MustCompile(`\bNaN\b|[+-]?\bInf\b|-106752 days`)

// TestReportsOfParts: no report holds NaN or infinity, whatever part of its records an experiment
// has when its budget ends.
func TestReportsOfParts(t *testing.T) {
	trials := 40
	if testing.Short() {
		trials = 6
	}
	random := rand.New(rand.NewSource(1))
	for _, e := range experiments.All() {
		for _, on := range []study.Target{cpu, gpu} {
			all := synthetic(e, on)
			for trial := range trials {
				rep, err := e.Report(someOf(random, all, trial), on)
				if err != nil || rep == nil {
					continue
				}
				for where, texts := range textsOf(rep) {
					for _, s := range texts {
						if noNumber.MatchString(s) {
							t.Errorf("%s: %s: %q", e.ID, where, s)
						}
					}
				}
			}
		}
	}
}

// someOf is a part of recs, some of which failed or were not evaluated.
func someOf(random *rand.Rand, recs []record.Record, trial int) []record.Record {
	share := random.Float64()
	var some []record.Record
	for _, r := range recs {
		if random.Float64() >= share {
			continue
		}
		if trial%2 == 1 && random.Float64() < 0.2 {
			r.Status, r.Stats = record.Failed, nil
		}
		if r.Training != nil && trial%3 == 1 && random.Float64() < 0.5 {
			training := *r.Training
			training.HeldOut = nil
			r.Training = &training
		}
		some = append(some, r)
	}
	return some
}

// textsOf is all that a report says, by where it says it.
func textsOf(rep *study.Report) map[string][]string {
	texts := map[string][]string{"a finding": rep.Findings}
	for _, c := range rep.Claims {
		texts["a claim"] = append(texts["a claim"], c.Here, c.Why)
	}
	for _, tab := range rep.Tables {
		texts["a title or note"] = append(append(texts["a title or note"], tab.Title), tab.Notes...)
		for i, c := range tab.Columns {
			texts["a heading"] = append(texts["a heading"], c.Name)
			for _, row := range tab.Rows {
				texts["column "+c.Name] = append(texts["column "+c.Name], row[i].Text)
			}
		}
	}
	return texts
}
