package main

import (
	"path/filepath"
	"testing"

	"rnnbench/internal/exit"
)

// TestPlotNothing: a figure without a single value is refused.
func TestPlotNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, "sweep --max-memory 1KiB -H 8 -B 1 -T 5 --impl naive,cudnnstyle --effort quick").want(t, exit.Error, nil, []string{"2 skipped"})
	for _, kind := range []string{"lines", "speedup", "heatmap", "winner", "winner --y memory", "roofline"} {
		o := rnnbench(t, "plot -f x.svg --kind "+kind)
		o.want(t, exit.Usage, nil, []string{"none of the 2 records has a value to draw: result", "hint: rnnbench show"})
	}
	if exists("x.svg") {
		t.Error("a figure of nothing was written")
	}
	rnnbench(t, "plot -f x.svg --y memory").want(t, exit.Done, nil, []string{"wrote x.svg"}) // skipped points have a memory, too
	rnnbench(t, "sweep -H 8 -B 1 -T 5 --impl naive --profile --out profile").want(t, exit.Done, nil, nil)
	runs, err := filepath.Glob("profile/*") // none of them is the latest
	if err != nil || len(runs) != 1 {
		t.Fatalf("%v, %v", runs, err)
	}
	rnnbench(t, "plot --y percent "+runs[0]).want(t, exit.Usage, nil, []string{"none of the 1 record has a value to draw: share of peak"})
}

// TestPlotMaps: the error for records that a map cannot show names the flags that help.
func TestPlotMaps(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, "sweep -H 4,8 -B 1,2 -T 2,3 --impl naive"+quickly).want(t, exit.Done, nil, nil)
	rnnbench(t, "plot -f x.svg --kind heatmap --x hidden --rows batch").want(t, exit.Usage, nil, []string{"the records also differ in time steps: add --panel steps and --where impl=NAME, or select fewer records with --where"})
	rnnbench(t, "plot -f x.svg --kind heatmap --x hidden --rows batch --panel steps").want(t, exit.Done, nil, []string{"wrote x.svg"})
	for _, line := range []string{"plot -f x.svg --y tim", "show --pivot hidden,impl --metric tim"} {
		rnnbench(t, line).want(t, exit.Usage, nil, []string{`unknown metric "tim": did you mean "time"?`, "hint: rnnbench list metrics"})
	}
}
