package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"rnnbench/internal/exit"
)

func TestGraph(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, "graph lstm-c --output 5 --onehot")
	o.want(t, exit.Done, []string{"i, f, f·c', i·g, c", "1 recurrent node"}, []string{"wrote out/lstm-c-grouped.svg"})
	for _, name := range []string{"lstm-c.dot", "lstm-c.svg", "lstm-c-grouped.dot", "lstm-c-grouped.svg"} {
		if data, err := os.ReadFile(filepath.Join("out", name)); err != nil || len(data) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	const jordan = `
[[layer]]
name = "x"
size = 3
input = "dense"
[[layer]]
name = "h"
size = 4
activation = "tanh"
bias = true
[[connection]]
from = "x"
to = "h"
[[connection]]
from = "h"
to = "h"
delay = %d
`
	for name, delay := range map[string]int{"good.toml": 2, "loop.toml": 0, "late.toml": math.MaxInt64} {
		text := fmt.Sprintf(jordan, delay)
		if err := os.WriteFile(name, []byte(text+"[[layer]]\nname = \"y\"\nsize = 4\n[[connection]]\nfrom = \"h\"\nto = \"y\"\nweight = \"diagonal\"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	rnnbench(t, "graph good.toml --run -B 2 -T 3 --history 2 --out -").want(t, exit.Done, []string{"recurrent", "h (2 ago)", "× the tolerance"}, nil)
	if o := rnnbench(t, "graph good.toml --run -T 3 --out - -o json"); !json.Valid([]byte(o.out)) {
		t.Errorf("not JSON: %s", o.out)
	}
	rnnbench(t, "graph loop.toml").want(t, exit.Usage, nil, []string{`loop.toml: graph: layer "h" connects to itself without a delay`})
	rnnbench(t, "graph good.toml -H 5").want(t, exit.Usage, nil, []string{"--hidden applies only to a cell, but good.toml is a file"})
	rnnbench(t, "graph gru --steps 5").want(t, exit.Usage, nil, []string{"--steps needs --run"})
	rnnbench(t, "graph gru --out good.toml").want(t, exit.Error, nil, []string{"cannot create the folder for drawings", "hint: use --out DIR"})
	rnnbench(t, "graph lstm -H 100000 --run --out -").want(t, exit.Error, nil, []string{"training lstm needs ", "is available"})
	rnnbench(t, "graph late.toml --run --out -").want(t, exit.Error, nil, []string{"training late needs ", "is available"})
	for _, flag := range []string{"batch", "steps", "history"} {
		rnnbench(t, fmt.Sprintf("graph good.toml --run --out - --%s %d", flag, math.MaxInt64)).want(t, exit.Error, nil, []string{"training good needs ", "is available"})
	}
	rnnbench(t, "graph none.toml").want(t, exit.Usage, nil, []string{"none.toml"})
	rnnbench(t, "graph good.toml --run --batch 0 --out -").want(t, exit.Usage, nil, []string{"must be at least 1"})
	rnnbench(t, "reproduce hwang-graph --quick --no-hostname").want(t, exit.Done, []string{"{i, f, f·c', i·g, c}"}, []string{"hwang-graph-lstm-peephole-fig2.svg", "report.md"})
	rnnbench(t, "__complete graph lstm").want(t, exit.Done, []string{"lstm-peephole"}, nil)
}
