package cells

import "testing"

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
