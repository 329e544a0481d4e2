package main

import (
	"encoding/json"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/tuner/progress"
)

// messages reads what a command wrote to stderr with --progress json.
func messages(t *testing.T, text string) (list []progress.Message, events map[string]int) {
	t.Helper()
	events = map[string]int{}
	for line := range strings.Lines(text) {
		var m progress.Message
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Event == "" || m.Elapsed <= 0 {
			t.Fatalf("%v: %s", err, line)
		}
		list, events[m.Event] = append(list, m), events[m.Event]+1
	}
	return list, events
}

func TestProgressForPrograms(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, tiny+" --progress json -o csv")
	o.want(t, exit.Done, []string{"naive"}, nil)
	list, events := messages(t, o.errors)
	if events["record"] != 4 || events["phase"] == 0 || events["note"] < 2 {
		t.Errorf("events %v", events)
	}
	last := 0
	for _, m := range list {
		if m.Event != "record" {
			continue
		}
		if *m.Done <= last || m.Total != 4 || m.Status != "ok" || m.Seconds <= 0 || m.Leader == "" || m.Point == nil || m.ETA == nil {
			t.Errorf("%+v", m)
		}
		last = *m.Done
	}

	o = rnnbench(t, strings.Replace(tinyTune, "-H 8", "-H 8,16", 1)+" --progress json")
	list, events = messages(t, o.errors)
	if events["point"] != 2 || events["lead"] < 2 || events["record"] == 0 || events["error"] != 0 {
		t.Errorf("events %v", events)
	}
	for _, m := range list {
		if m.Event == "point" && (m.Total != 2 || m.Impl == "" || m.RunnerUp == "" || m.Lead == nil || m.Candidates == 0 || m.Samples == 0) {
			t.Errorf("%+v", m)
		}
	}
	o = rnnbench(t, "sweep --progress json -H abc")
	list, _ = messages(t, o.errors)
	if m := list[len(list)-1]; o.code != exit.Usage || m.Event != "error" || m.Exit != exit.Usage || !strings.Contains(m.Text, "is not a size") {
		t.Errorf("%+v", list)
	}
	if o = rnnbench(t, tiny+" --progress json -q -o csv"); o.errors != "" {
		t.Errorf("quiet: %s", o.errors)
	}
	if o = rnnbench(t, "verify --progress json -H 8 -B 2 -T 3 --impl naive"); o.code != exit.Done {
		t.Errorf("%+v", o)
	}
	messages(t, o.errors)
}

// TestTuneTellsOfPoints: without a terminal, a tune writes a line per point, however many
// candidates it has.
func TestTuneTellsOfPoints(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, strings.Replace(tinyTune, "-H 8", "-H 8,16", 1))
	o.want(t, exit.Done, nil, []string{"[1/2] lstm forward H=8 B=2 T=3 L=1  ", "  ETA ", "[2/2] lstm forward H=16"})
	if n := strings.Count(o.errors, "\n["); n != 2 {
		t.Errorf("%d lines of points:\n%s", n, o.errors)
	}
}
