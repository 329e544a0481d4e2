package cells

import (
	"testing"

	"rnnbench/rnn/cell"
)

// TestLoad: every file is a cell, and other names are none.
func TestLoad(t *testing.T) {
	for _, name := range Names() {
		if c, err := Load(name); err != nil || c.Text == "" {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	if len(Names()) == 0 {
		t.Error("there are no cells")
	}
	if c, err := Load("lstm"); err == nil {
		t.Errorf("lstm is a file: %v", c)
	}
}

// TestInners: the first half of each cell passes as few values as its equations allow, and none is
// registered.
func TestInners(t *testing.T) {
	list := Inners()
	for i, want := range []int{0, 1, 3, 0} {
		if c := list[i]; c.Inner == 0 || c.Passed() != want {
			t.Errorf("%v has %d inner gates and passes %d values, want %d", c, c.Inner, c.Passed(), want)
		}
	}
	for _, c := range list {
		if cell.Lookup(c.Name) == c {
			t.Errorf("%v is registered", c)
		}
	}
}
