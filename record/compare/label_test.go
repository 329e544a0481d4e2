package compare

import (
	"strings"
	"testing"

	"rnnbench/record"
)

// TestKeepApart gives two sides with the same label different labels.
func TestKeepApart(t *testing.T) {
	sets := []record.Set{{Label: "a"}, {Label: "b"}, {Label: "a"}, {Label: "a"}}
	KeepApart(sets, []int{0, 0, 1, 2})
	var labels []string
	for _, s := range sets {
		labels = append(labels, s.Label)
	}
	if got := strings.Join(labels, ", "); got != "a, a, a #2, a #3" {
		t.Error(got)
	}
}
