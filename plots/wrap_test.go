package plots

import (
	"slices"
	"strings"
	"testing"
)

// TestWrapLong: a word as long as a page is broken into lines that fit and lose no letter, in little
// time.
func TestWrapLong(t *testing.T) {
	word := strings.Repeat("wide-", 600)
	sty := legendStyle()
	lines := wrap("a "+word+" z", sty, 90)
	if got := strings.Join(lines, ""); strings.ReplaceAll(got, " ", "") != "a"+word+"z" {
		t.Error("the lines are not the text")
	}
	for _, l := range lines {
		if sty.Width(l) > 90 {
			t.Errorf("%q is %v wide", l, sty.Width(l))
		}
	}
	if n := longest([]rune("WW"), sty, 0.1); n != 1 {
		t.Errorf("%d runes where none fits", n)
	}
	measured := testing.AllocsPerRun(1, func() { wrap(word, sty, 90) })
	if measured > 200*float64(len(lines)) {
		t.Errorf("%.0f allocations for %d lines", measured, len(lines))
	}
}

// TestWrapKnobs: a technique with many knobs is broken between them.
func TestWrapKnobs(t *testing.T) {
	sty := legendStyle()
	lines := wrap("cudnnstyle:fused=0:grouped=0, train", sty, sty.Width("cudnnstyle:fused=0:grou"))
	if want := []string{"cudnnstyle:fused=0:", "grouped=0, train"}; !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
}
