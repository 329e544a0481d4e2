package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNetworks: each built-in network has a purpose, and axes of points that are valid with all defaults.
func TestNetworks(t *testing.T) {
	all := Networks()
	if len(all) < 3 {
		t.Fatalf("there are %d networks", len(all))
	}
	for _, n := range all {
		if n.Doc == "" || len(n.Axes) < 3 || !strings.HasPrefix(n.Name, "speech:") {
			t.Errorf("%+v", n)
		}
		l, err := ReadNetwork(n.Name)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range n.Axes {
			if got := mustResolve(t, l).Grid.Axes[name]; got != want {
				t.Errorf("%s: %s is %q, want %q", n.Name, name, got, want)
			}
		}
	}
}

// TestReadNetwork: a file of a network has axes that say what it is, and nothing else.
func TestReadNetwork(t *testing.T) {
	for text, want := range map[string]string{
		"[axes]\ncell = 'gru'\nhidden = [64, 128]\ndense = 7":               "",
		"[axes]\nprecision = 'bf16'":                                        "precision does not say what a network is",
		"[axes]\nhiden = 7":                                                 "did you mean hidden?",
		"[axes]\nlayers = 'two'":                                            `"two" is not a size`,
		"[axes]\nlayers = 2\n[measure]\nrounds = 3":                         "rounds does not say what a network is",
		"[axes]\nimpl = 'naive'":                                            "impl does not say what a network is",
		"[axes]\nlayers = 2\n" + twoRivals[strings.Index(twoRivals, "[["):]: "may only have axes",
		"": "it has no axes",
	} {
		file := filepath.Join(t.TempDir(), "network.toml")
		if err := os.WriteFile(file, []byte("version = 1\n"+text+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := ReadNetwork(file)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for name, want := range map[string]string{"speech:smal": "did you mean speech:small?", "nothere.toml": "no such file", "nothere": `unknown network "nothere"`} {
		if _, err := ReadNetwork(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestCellsBesideNetworks: a cell's file is looked up beside that of the network first.
func TestCellsBesideNetworks(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("there", 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"there/own.cell": "", "there/n.toml": "version = 1\n[axes]\ncell = ['own.cell', 'gru', 'here.cell']\n"} {
		if err := os.WriteFile(filepath.FromSlash(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	l, err := ReadNetwork(filepath.Join("there", "n.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := l.values["cell"][0], filepath.Join("there", "own.cell")+",gru,here.cell"; got != want {
		t.Errorf("cells are %q, want %q", got, want)
	}
}
