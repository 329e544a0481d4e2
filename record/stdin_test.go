package record

import (
	"strings"
	"testing"
)

// TestReadAllFrom reads records from a stream beside a run.
func TestReadAllFrom(t *testing.T) {
	dir := t.TempDir()
	run, err := Create(dir, Manifest{Label: "first"})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Finish(0); err != nil {
		t.Fatal(err)
	}
	text := line(t, func(*Record) {})
	for args, want := range map[string]string{"-": "-", "b=-": "b", run.Dir() + " -": "first -", "a=" + run.Dir(): "a"} {
		sets, _, err := ReadAllFrom(strings.NewReader(text), strings.Fields(args))
		var labels []string
		for _, s := range sets {
			labels = append(labels, s.Label)
			if s.Manifest.Run == "" && len(s.Records) != 1 {
				t.Errorf("%s: %d records of the stream", args, len(s.Records))
			}
		}
		if err != nil || strings.Join(labels, " ") != want {
			t.Errorf("%s: %q, %v, want %q", args, labels, err, want)
		}
	}
	two := text + "\n" + line(t, func(r *Record) { r.Run = "second" }) + "\n" + text
	sets, _, err := ReadAllFrom(strings.NewReader(two), []string{"-"})
	if err != nil || len(sets) != 2 || sets[1].Label != "second" || len(sets[0].Records) != 1 || len(sets[1].Records) != 1 {
		t.Errorf("two runs in one stream are read as %d sets, %+v, %v", len(sets), sets, err)
	}
	if _, _, err := ReadAllFrom(strings.NewReader(""), []string{"nosuch"}); err == nil {
		t.Error("a run that is not there was read")
	}
}
