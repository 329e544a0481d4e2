package graph_test

import (
	"testing"

	"rnnbench/rnn/graph"
)

// FuzzParse: a graph's file is read or refused, and what was read can be analysed.
func FuzzParse(f *testing.F) {
	const head = "[[layer]]\nname = 'x'\nsize = 2\ninput = 'dense'\n[[layer]]\nname = 'y'\nsize = 2\nactivation = 'tanh'\nbias = true\n"
	f.Add([]byte(head + "[[connection]]\nfrom = 'x'\nto = 'y'\n[[connection]]\nfrom = 'y'\nto = 'y'\ndelay = 1\n"))
	f.Add([]byte(head + "[[connection]]\nfrom = 'y'\nto = 'y'\nweight = 'diagonal'\ndelay = 3\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := graph.Parse(text)
		if err != nil {
			return
		}
		if _, err := g.Analyze(); err != nil {
			t.Errorf("it passes its check and fails: %v", err)
		}
		for k := range g.Layers {
			_ = g.Delay(k)
		}
		_ = g.Params()
	})
}
