package model_test

import (
	"testing"

	"rnnbench/model"
)

// FuzzParse: a machine's file is read or refused. A machine that was read is written so that it
// reads back.
func FuzzParse(f *testing.F) {
	f.Add([]byte("name = 'm'\nflops = 1e9\n[[level]]\nname = 'l1'\np = 2\nb = 1e9\nm = 32768\n"))
	f.Add([]byte("name = 'm'\nflops = inf\nlevel = [{name = 'x', p = 1, b = nan}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := model.Parse(text)
		if err != nil {
			return
		}
		_, _, _ = m.Parts(), m.Barrier(), m.Private()
		again, err := m.Format()
		if err == nil {
			_, err = model.Parse(again)
		}
		if err != nil {
			t.Errorf("it does not read back: %v", err)
		}
	})
}
