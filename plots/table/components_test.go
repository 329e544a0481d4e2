package table

import (
	"testing"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/graph"
)

// TestComponents: the table has inputs, loops and the layers that read them.
func TestComponents(t *testing.T) {
	g, err := graph.New(graph.Stack{Cell: cell.RNNTanh, Layers: 1, Input: 3, Hidden: 4, Output: 2})
	if err != nil {
		t.Fatal(err)
	}
	a, err := g.Analyze()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	c := Components(g, a)
	for _, r := range c.Rows {
		kinds[r[2].Text]++
	}
	if kinds["input"] != 1 || kinds["recurrent"] != 1 || kinds["at once"] == 0 || len(c.Notes) != 1 {
		t.Errorf("%v: %+v", kinds, c)
	}
}
