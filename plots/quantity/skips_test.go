package quantity

import (
	"slices"
	"testing"

	"rnnbench/results"
)

// TestSkipsWithoutPlaces: a line ends with its reason where no place has a name.
func TestSkipsWithoutPlaces(t *testing.T) {
	code, reason := results.ReasonCell, "unsupported: cuDNN has no cell qrnn2"
	var s Skips
	s.Add(&results.Record{Status: results.OK, Impl: results.Impl{Label: "cudnn"}}, "")
	s.Add(&results.Record{Status: results.Skipped, Impl: results.Impl{Label: "cudnn"}, ReasonCode: &code, Reason: &reason}, "")
	if got, want := s.Lines(), []string{"cudnn: 1 skipped: cuDNN has no cell qrnn2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
