package main

import (
	"slices"

	"rnnbench/results"
	"rnnbench/tuner"
)

// won notes the winner in the run's manifest, if there is a run: reports name it.
func (t *tuning) won(v *tuner.Verdict) error {
	if w := v.WinnerRecord(); w != nil {
		run := w.Run
		if run == "" && t.folder != nil { // measured just now
			run = t.folder.Manifest().Run
		}
		t.winners = append(t.winners, results.Winner{Point: v.Point, Label: label(w), Seconds: v.Medians[v.Winner], Run: run, Ties: ties(v)})
	}
	if t.folder == nil {
		return nil
	}
	return t.folder.Update(func(m *results.Manifest) {
		for _, w := range t.winners {
			if i := slices.IndexFunc(m.Winners, func(old results.Winner) bool { return old.Point == w.Point }); i >= 0 {
				m.Winners[i] = w
			} else {
				m.Winners = append(m.Winners, w)
			}
		}
	})
}
