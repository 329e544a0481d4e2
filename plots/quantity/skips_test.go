package quantity

import (
	"slices"
	"testing"

	"rnnbench/record"
)

// TestSkipsWithoutPlaces: a line ends with its reason if no place has a name.
func TestSkipsWithoutPlaces(t *testing.T) {
	code, reason := record.ReasonCell, "unsupported: cuDNN has no cell qrnn2"
	var s Skips
	s.Add(&record.Record{Status: record.OK, Impl: record.Impl{Label: "cudnn"}}, "")
	s.Add(&record.Record{Status: record.Skipped, Impl: record.Impl{Label: "cudnn"}, ReasonCode: &code, Reason: &reason}, "")
	if got, want := s.Lines(), []string{"cudnn: 1 skipped: cuDNN has no cell qrnn2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPluralReasons: counts of reasons are plain English.
func TestPluralReasons(t *testing.T) {
	for reason, want := range map[string]string{
		"setting unsupported": "settings unsupported", "resets unsupported": "resets unsupported", "history unsupported": "histories unsupported",
		"wrong answer": "wrong answers", "impossible time": "impossible times", "out of memory": "out of memory",
	} {
		if got := plural(reason); got != want {
			t.Errorf("%q of several is %q, want %q", reason, got, want)
		}
	}
}

// TestPlace: a place names its unusual values, or all of them if none is unusual.
func TestPlace(t *testing.T) {
	recs := []*record.Record{
		{Point: record.Point{Cell: "lstm", Hidden: 512, Input: 512, Batch: 1}},
		{Point: record.Point{Cell: "lstm", Hidden: 512, Input: 64, Batch: 1, Resets: 3, Heads: 2}},
		{Point: record.Point{Cell: "lstm", Hidden: 512, Input: 512, Batch: 1, Resets: 3}},
	}
	axes := Varying(recs)
	for i, want := range []string{"I=H heads=0 resets=0%", "I=64 heads=2 resets=3%", "resets=3%"} {
		if got := Place(recs[i], axes); got != want {
			t.Errorf("record %d lies at %q, want %q", i, got, want)
		}
	}
	if got, want := Common(recs[2:]), "lstm · H=512 · B=1 · T=0 · L=0 · resets=3%"; got != want {
		t.Errorf("a title says %q, want %q", got, want)
	}
}
