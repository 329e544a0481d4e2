package plots

import (
	"slices"
	"testing"
)

// TestNote: a figure keeps its own note of a kind; others are added.
func TestNote(t *testing.T) {
	fig := &Chart{Notes: []string{"Partly checked: a.", "Marks are medians."}}
	Note(fig, "Partly checked: a; b.", "Unverified: c.", "Marks are medians.")
	if want := []string{"Partly checked: a.", "Marks are medians.", "Unverified: c."}; !slices.Equal(fig.Notes, want) {
		t.Errorf("%q, want %q", fig.Notes, want)
	}
}
