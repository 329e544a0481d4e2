package rival

import (
	"testing"

	"rnnbench/rnn/knob"
)

// TestInternalKnobs: a knob that a rival calls internal takes all its values, but none is offered.
func TestInternalKnobs(t *testing.T) {
	a, err := parse([]byte(`{"knobs":[{"name":"graph","values":[1,0]},{"name":"alone","values":[0,1,2],"internal":true}]}`))
	if err != nil {
		t.Fatal(err)
	}
	knobs, err := a.knobs()
	if err != nil {
		t.Fatal(err)
	}
	alone := knob.Find(knobs, "alone")
	if alone == nil || len(alone.Values) != 1 || !alone.Accepts(2) || alone.Accepts(3) {
		t.Errorf("alone is %+v", alone)
	}
	varied := (&Rival{knobs: knobs}).Varied()
	if names := knob.Names(varied); len(varied) != 1 || names[0] != "graph" {
		t.Errorf("experiments compare %v", names)
	}
	if len((&Rival{knobs: knobs, o: Options{Vary: []string{"alone"}}}).Varied()) != 1 {
		t.Error("a file that names alone does not vary it")
	}
}
