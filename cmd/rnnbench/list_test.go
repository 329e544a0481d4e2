package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"rnnbench/internal/exit"
)

func TestManage(t *testing.T) {
	const model = "checkpoint.pt"
	content, err := os.ReadFile(filepath.Join("../../modelfile/testdata", model))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile(model, content, 0o600); err != nil {
		t.Fatal(err)
	}
	valid := func(line string) {
		t.Helper()
		o := rnnbench(t, line)
		o.want(t, exit.Done, nil, nil)
		if !json.Valid([]byte(o.out)) {
			t.Errorf("%s: not JSON: %s", line, o.out)
		}
	}
	for _, c := range catalogues() {
		name := c.name
		if name == "layers" {
			name += " --model " + model
		}
		o := rnnbench(t, "list "+name)
		o.want(t, exit.Done, []string{strings.TrimSuffix(strings.Replace(c.name, "axes", "axis", 1), "s")}, nil)
		for line := range strings.Lines(o.out) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > pageWidth {
				t.Errorf("list %s has a line of %d columns: %s", c.name, n, line)
			}
		}
		valid("list -o json " + name)
	}
	for _, line := range []string{"list -o json", "version -o json", "doctor -o json --no-hostname", "explain -H 4 -B 1 -T 2 -o json", "reproduce -o json"} {
		valid(line)
	}
	if !testing.Short() { // measures this machine once more
		rnnbench(t, "doctor --threads 1").want(t, exit.Done, []string{"with 1 worker and ", "peak", "noise"}, nil)
	}
	rnnbench(t, "reproduce").want(t, exit.Done, []string{"appleyard-table1"}, nil)
	for _, s := range []string{"bash", "zsh", "fish", "powershell"} {
		rnnbench(t, "completion "+s).want(t, exit.Done, []string{"rnnbench"}, nil)
	}
	for _, c := range []struct{ line, word string }{
		{"__complete sweep --cell lstm,g", "lstm,gru\tGRU"},
		{"__complete sweep --impl c", "cudnnstyle\t"},
		{"__complete sweep --preset q", "quick\t"},
		{"__complete sweep --effort q", "quick"},
		{"__complete sweep -o m", "markdown"},
		{"__complete show --metric s", "speedup\t"},
		{"__complete plot --rows h", "hidden\t"},
		{"__complete reproduce a", "appleyard-table1\t"},
		{"__complete compare x --fail-on slower,b", "slower,broken"},
		{"__complete report --baseline n", "naive\t"},
		{"__complete list p", "presets\t"},
		{"__complete list l", "layers\t"},
		{"__complete list layers --model m", "onnx\nsafetensors\npt\npth\nbin\n"},
		{"__complete sweep --impl cudnnstyle:", "cudnnstyle:fused=\t"},
		{"__complete sweep --impl naive,x=cudnnstyle:overlap=0:f", "naive,x=cudnnstyle:overlap=0:fused=\t"},
		{"__complete sweep --impl persistent:bands=", "persistent:bands=0\t"},
		{"__complete sweep --where h", "hidden<=\t"},
		{"__complete show --where cell!=", "cell!=gru"},
		{"__complete sweep --zip hidden,b", "hidden,batch\t"},
		{"__complete sweep --point H=5,B", "H=5,B=\t"},
		{"__complete plot --x g", "graph\t"},
		{"__complete plot --panel inp", "inputbatch\t"},
	} {
		rnnbench(t, c.line).want(t, exit.Done, []string{c.word}, nil)
	}
}
