package experiments_test

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/record"
)

// TestRL: the report says what resets cost each technique, and how rivals compare, if there are any.
func TestRL(t *testing.T) {
	alone := study.Target{Name: "synthetic"}
	recs := planned(t, "rl", alone)
	slow := slices.Clone(recs)
	for i, r := range recs { // resets cost persistent a tenth in one of three layers
		if r.Impl.Label == "persistent" && r.Point.Resets > 0 && r.Point.Heads > 0 {
			slow[i] = faster([]record.Record{r}, "persistent", 1/1.1)[0]
		}
	}
	rep := report(t, "rl", slow, alone)
	for label, want := range map[string]string{"persistent": "at 4 of 6 layers", "cudnnstyle": "at 6 of 6 layers"} {
		if s := about(rep, "Forward, "+label); !strings.Contains(s, "resets cost at most 3 % "+want) {
			t.Errorf("of %s: %q", label, s)
		}
	}
	if about(rep, "No rival was measured") == "" {
		t.Error("the lack of rivals is not said")
	}
	if len(rep.Figures) != 1 || len(rep.Figures[0].Figure.(*plots.Bars).Groups) != 6 {
		t.Errorf("%d figures", len(rep.Figures))
	}
	beside := report(t, "rl", planned(t, "rl", cpu), cpu)
	for _, words := range []string{"Train, with resets: rnnbench's fastest technique is", "Forward, without resets: rnnbench's fastest technique is"} {
		if s := about(beside, words); !strings.Contains(s, "as fast as ") {
			t.Errorf("%s: %q", words, s)
		}
	}
	if len(beside.Figures) != 1+len(rivals) {
		t.Errorf("%d figures with %d rivals", len(beside.Figures), len(rivals))
	}
}
