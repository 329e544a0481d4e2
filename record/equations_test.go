package record

import (
	"strings"
	"testing"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
)

// TestEquations: a record of a cell from a file carries the file's text, and reading the record makes
// the cell known. Text that does not belong to the cell's name is refused.
func TestEquations(t *testing.T) {
	const text = "# a unit of this test\nh' = tanh(W x + R h + b)\n"
	c, err := equations.Parse("unit.cell", "unit", text)
	if err != nil {
		t.Fatal(err)
	}
	cell.Register(c)
	run := create(t, 1)
	rec := sample(9)
	rec.Point.Cell = c.Name
	if err := run.Append(&rec); err != nil {
		t.Fatal(err)
	}
	_, records := mustRead(t, run.Dir(), 0)
	read := records[1]
	if read.Equations == nil || *read.Equations != text {
		t.Fatalf("the record has the equations %v", read.Equations)
	}
	other := strings.Replace(text, "tanh", "sigmoid", 1)
	read.Equations = &other
	if err := check(&read); err == nil {
		t.Error("a record with other equations than its name says is read")
	}
	broken := "h' = tanh("
	read.Equations = &broken
	if err := check(&read); err == nil {
		t.Error("a record whose equations are broken is read")
	}
}
