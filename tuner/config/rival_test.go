package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const twoRivals = `version = 1

[[rival]]
name = "pytorch"
command = ["python3", "rivals/pytorch.py"]
devices = ["cpu", "cuda"]
vary = ["graph"]

[[rival]]
name = "mine"
command = "./mine"
`

// TestRivals: rivals are read, printed and stored in manifests unchanged.
func TestRivals(t *testing.T) {
	c := mustResolve(t, mustParse(t, twoRivals))
	want := []Rival{
		{Name: "pytorch", Command: []string{"python3", "rivals/pytorch.py"}, Devices: []string{"cpu", "cuda"}, Vary: []string{"graph"}},
		{Name: "mine", Command: []string{"./mine"}},
	}
	if !reflect.DeepEqual(c.Rivals, want) {
		t.Errorf("got %+v", c.Rivals)
	}
	var printed bytes.Buffer
	if err := Print(&printed, c); err != nil {
		t.Fatal(err)
	}
	if again := mustResolve(t, mustParse(t, printed.String())); !reflect.DeepEqual(again.Rivals, want) {
		t.Errorf("printed and read: %+v", again.Rivals)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := FromJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	if again := mustResolve(t, l); !reflect.DeepEqual(again.Rivals, want) {
		t.Errorf("from a manifest: %+v", again.Rivals)
	}
}

// TestRivalsOfLayers: of rivals with one name the strongest layer's counts, and weaker layers add others.
func TestRivalsOfLayers(t *testing.T) {
	flag := mustParse(t, "version = 1\n[[rival]]\nname = 'mine'\ncommand = 'other'\n")
	c := mustResolve(t, flag, mustParse(t, twoRivals))
	if len(c.Rivals) != 2 || c.Rivals[0].Command[0] != "other" || c.Rivals[1].Name != "pytorch" {
		t.Errorf("got %+v", c.Rivals)
	}
}

// TestRivalMistakes: each mistake is one sentence at its place.
func TestRivalMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"name = 'Py Torch'\ncommand = 'x'", "its name must be a word of small letters"},
		{"command = 'x'", "its name must be a word of small letters"},
		{"name = 'a'", "the command of a is missing"},
		{"name = 'a'\ncommand = []", "the command of a is missing"},
		{"name = 'a'\ncommand = 'x'\ndevices = 'tpu'", `devices: "tpu" is unknown: write cpu, cuda or cuda:0`},
		{"name = 'a'\ncommand = 'x'\n[[rival]]\nname = 'a'\ncommand = 'y'", "two rivals are named a"},
		{"name = 'a'\ncommand = 'x'\ncwd = '/'", "unknown key"},
	} {
		if _, err := Parse([]byte("version = 1\n[[rival]]\n"+c.text+"\n"), "f"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// TestReadRivals: a file for --rival may have nothing else.
func TestReadRivals(t *testing.T) {
	for text, want := range map[string]string{
		twoRivals:                     "",
		twoRivals + "[axes]\nsteps=1": "may only have [[rival]] tables",
		"version = 1\n":               "it has no [[rival]]",
	} {
		file := filepath.Join(t.TempDir(), "rival.toml")
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := ReadRivals(file)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// TestRivalsBesideTheirFile: relative paths of a command are those of the file's folder, if there is
// such a file, else of the current folder. The program's bare name is looked up on the path.
func TestRivalsBesideTheirFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"there/script.py", "there/run", "there/python3", "script2.py", "run2"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	slash := filepath.FromSlash
	for _, c := range []struct{ file, command, want string }{
		{"there/rival.toml", "['python3', 'script.py', '-u']", "python3 there/script.py -u"},
		{"there/rival.toml", "['python3', 'script2.py']", "python3 script2.py"}, // as in files of earlier versions
		{"there/rival.toml", "['python3', 'there/script.py']", "python3 there/script.py"},
		{"there/rival.toml", "['./run', 'nothere']", "there/run nothere"},
		{"rival.toml", "['./run2']", "./run2"},
		{"there/rival.toml", "['./run2']", "./run2"},
		{"there/rival.toml", "['./nothere']", "there/nothere"},
	} {
		text := "version = 1\n[[rival]]\nname = 'a'\ncommand = " + c.command + "\n"
		if err := os.WriteFile(slash(c.file), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		l, err := ReadRivals(slash(c.file))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(mustResolve(t, l).Rivals[0].Command, " "); filepath.ToSlash(got) != c.want {
			t.Errorf("%s, %s: %s, want %s", c.file, c.command, got, c.want)
		}
	}
}
