package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/rnn/axis"
	"rnnbench/tuner/grid"
)

const full = `version = 1
label = "h200-nightly"
device = ["cuda:0", "cpu"]
where = "mem<=16GiB"

[axes]
hidden = "256:4096:x2"
batch = [1, 4, "16"]
steps = 50
streams = ["auto", 2]
onehot = [false, true]
cell = ["rnn-tanh", "lstm"]
impl = ["naive", "grouped=cudnnstyle:fused=0"]
skip_impl = "scc"

[[zip]]
axes = ["input", "output"]
values = [[1760, 16], ["2Ki", "none"]]

[[exclude]]
where = ["impl=persistent", "hidden>2048"]

[measure]
rounds = 12
target_ci = "1.5%"
min_time = "5ms"
verify = false
cache = "cold"
seed = 7

[output]
dir = "elsewhere"
`

func mustParse(t *testing.T, text string) Layer {
	t.Helper()
	l, err := Parse([]byte(text), "bench.toml")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustResolve(t *testing.T, layers ...Layer) Config {
	t.Helper()
	c, err := Resolve(layers...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// layer makes a layer of "name=value" settings.
func layer(t *testing.T, settings ...string) Layer {
	t.Helper()
	var l Layer
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		if err := l.Set(name, strings.Split(value, ";")...); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return l
}

func TestFile(t *testing.T) {
	c := mustResolve(t, mustParse(t, full))
	axes := map[string]string{}
	for _, a := range axis.All() {
		axes[a.Name] = a.Default
	}
	delete(axes, "input") // in a zip
	delete(axes, "output")
	maps.Copy(axes, map[string]string{"hidden": "256:4096:x2", "batch": "1,4,16", "steps": "50", "streams": "auto,2", "onehot": "false,true", "cell": "rnn-tanh,lstm"})
	want := Config{
		Label: "h200-nightly", Devices: []string{"cuda:0", "cpu"}, Dir: "elsewhere", Measure: Default(),
		Grid: grid.Request{
			Axes:     axes,
			Zips:     []grid.Zip{{Axes: []string{"input", "output"}, Rows: [][]string{{"1760", "16"}, {"2Ki", "none"}}}},
			Where:    []string{"mem<=16GiB"},
			Exclude:  [][]string{{"impl=persistent", "hidden>2048"}},
			Impl:     []string{"naive", "grouped=cudnnstyle:fused=0"},
			SkipImpl: []string{"scc"},
		},
	}
	want.Measure.Rounds, want.Measure.TargetCI, want.Measure.MinTime, want.Measure.Verify = 12, 0.015, 5*time.Millisecond, false
	want.Measure.Cache, want.Measure.Seed = "cold", 7
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v\nwant %+v", c, want)
	}
	if _, err := grid.New(c.Grid, grid.Vocabulary{}); err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "bench.toml")
	if err := os.WriteFile(file, []byte(full), 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := ReadFile(file)
	if err != nil || !reflect.DeepEqual(mustResolve(t, l), want) {
		t.Errorf("from the disk: %v", err)
	}
	if _, err := ReadFile(file + "x"); err == nil {
		t.Error("a file that is not there was read")
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "f:1:1: version: it is missing or not a number: write version = 1"},
		{"version = 2", "f:1:1: version: 2 is not supported"},
		{`version = "1"`, "f:1:1: version: it is missing or not a number"},
		{"version = 1\nlable = \"x\"", "f:2:1: lable: unknown key: did you mean label?\n    lable = \"x\"\n    ^~~~~"},
		{"version = 1\n[measure]\n\tmin_sampels = 3", "f:3:2: measure.min_sampels: unknown key"},
		{"version = 1\n[measure]\n\tround = 3", "f:3:2: measure.round: unknown key: did you mean rounds?\n    \tround = 3\n    \t^~~~~"},
		{"version = 1\nrounds = 3", "f:2:1: rounds: unknown key here: did you mean measure.rounds?"},
		{"version = 1\n[axes]\npreset = \"quick\"", "f:3:1: axes.preset: unknown key here: did you mean preset (above the first table)?"},
		{"version = 1\n[mesure]\nrounds = 3", "f:2:2: mesure: unknown key: did you mean measure?"},
		{"version = 1\n[axes]\nhidden = 0", "f:3:1: axes.hidden: 0 is not allowed"},
		{"version = 1\n[axes]\nhidden = -5", `axes.hidden: "-5" is not a size`},
		{"version = 1\n[axes]\nhidden = 1.5", `axes.hidden: "1.5" is not a size`},
		{"version = 1\n[axes]\nhidden = nan", `axes.hidden: "NaN" is not a size`},
		{"version = 1\n[axes]\nhidden = []", "axes.hidden: the list is empty"},
		{"version = 1\n[axes]\nhidden = [[1]]", "axes.hidden: it is a list of lists"},
		{"version = 1\n[axes]\nhidden = 2026-11-21", "axes.hidden: wrong type"},
		{"version = 1\n[axes]\nhidden = {a = 1}", "axes.hidden: wrong type"},
		{"version = 1\naxes.hidden = 0", "f:2:1: axes.hidden: 0 is not allowed"},
		{"version = 1\naxes = {hidden = 0}", "f:2:1: axes.hidden: 0 is not allowed"},
		{"version = 1\n[axes]\nhidden = 8\nhidden = 9", "f:4:1: key hidden is already defined"},
		{"version = 1\n[axes]\n[axes]", "f:3:2: "},
		{"version = 1\naxes = 3", "f:2:8: axes: wrong type"},
		{"version = 1\n[measure]\nrounds = \"ten\"", `f:3:1: measure.rounds: "ten" is not a number in range: write a whole number`},
		{"version = 1\n[measure]\nrounds = [1, 2]", "measure.rounds: it takes one value, not 2"},
		{"version = 1\n[measure]\nwarmup = 100", `measure.warmup: "100" is not a duration: write one with a unit`},
		{"version = 1\n[measure]\nwarmup = \"-1s\"", "must not be negative"},
		{"version = 1\n[measure]\ntarget_ci = 1", `measure.target_ci: "1" is more than 100 %`},
		{"version = 1\n[measure]\ncache = \"warm\"", `measure.cache: it cannot be "warm"`},
		{"version = 1\n[measure]\norder = \"interleave\"", "did you mean interleaved?"},
		{"version = 1\n[measure]\nverify = \"maybe\"", "neither on nor off"},
		{"version = 1\n[measure]\nseed = -1", "not a seed"},
		{"version = 1\n[measure]\nseed = \"18446744073709551615\"", "write a whole number from 0 to 9223372036854775807"},
		{"version = 1\npreset = \"quik\"", "f:2:1: preset: unknown preset \"quik\": did you mean quick?"},
		{"version = 1\npoint = \"H=0\"", "f:2:1: point: H: 0 is not allowed"},
		{"version = 1\nwhere = [\"hidden\"]", "f:2:1: where: \"hidden\" is not a condition"},
		{"version = 1\ndevice = \"\"", "device: it is empty"},
		{"version = 1\n[[zip]]\naxes = [\"hidden\"]", "f:2:3: zip[0]: hidden is a single axis"},
		{"version = 1\n[[zip]]\naxes = [\"hidden\", \"batch\"]\nvalues = [[1]]", "zip[0]: a row has 1 values"},
		{"version = 1\n[[zip]]\naxes = [\"hidden\", \"batch\"]\nvalues = [[1, 0]]", "zip[0]: batch: 0 is not allowed"},
		{"version = 1\n[[zip]]\naxis = 3", "f:3:1: zip.axis: unknown key"},
		{"version = 1\n[[exclude]]\nwhere = [\"hidden>1\"]\n[[exclude]]\nwhere = [\"hiden>1\"]", "f:5:1: exclude[1].where: unknown key \"hiden\""},
		{"version = 1\n[[exclude]]", "exclude[0].where: it is missing"},
		{"version = 1\nlabel = \"a\nb\"", "f:2:"},
		{"version = 1\nversion = 1", "f:2:"},
		{"version == 1", "f:1:"},
	} {
		_, err := Parse([]byte(c.text), "f")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), "config.") || strings.Contains(err.Error(), "interface")) {
			t.Errorf("%q speaks of Go: %v", c.text, err)
		}
	}
	_, err := Parse([]byte("[measure]\nwarmup = 100\nrounds = 0\n"), "f")
	if err == nil || strings.Count(err.Error(), "f:") != 3 {
		t.Errorf("not every mistake is reported: %v", err)
	}
}

func TestPrecedence(t *testing.T) {
	file := mustParse(t, "version = 1\npreset = \"quick\"\n[axes]\nhidden = 64\nbatch = 2\n[measure]\nrounds = 20\nwarmup = \"1s\"\nseed = 3\n")
	env, warnings, err := FromEnv([]string{"RNNBENCH_HIDDEN=32", "RNNBENCH_SEED=4", "RNNBENCH_WHERE=hidden>1;batch>1", "RNNBENCH_DEVICE=cpu,cuda:0",
		"RNNBENCH_LABEL=", "RNNBENCH_CUDA=/x", "RNNBENCH_RESULTS=there", "RNNBENCH_HIDEN=3", "PATH=/bin"})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "unknown environment variable RNNBENCH_HIDEN: did you mean RNNBENCH_HIDDEN?") {
		t.Errorf("got %q, %v", warnings, err)
	}
	flags := layer(t, "seed=5", "effort=quick")
	c := mustResolve(t, flags, env, file)
	if c.Measure.Seed != 5 || c.Measure.Rounds != 6 || c.Measure.Warmup != 20*time.Millisecond || c.Dir != "there" ||
		!maps.Equal(c.Grid.Axes, map[string]string{"hidden": "32", "batch": "2"}) || !slices.Equal(c.Grid.Presets, []string{"quick"}) ||
		!slices.Equal(c.Grid.Where, []string{"hidden>1", "batch>1"}) || !slices.Equal(c.Devices, []string{"cpu", "cuda:0"}) {
		t.Errorf("got %+v", c)
	}
	c = mustResolve(t, layer(t, "rounds=7", "effort=rigorous"), file)
	if c.Measure.Rounds != 7 || c.Measure.MaxRounds != 100 || c.Measure.Seed != 3 {
		t.Errorf("got %+v", c.Measure)
	}
	if c = mustResolve(t, layer(t, "rounds=50")); c.Measure.MaxRounds != 50 {
		t.Errorf("got %+v", c.Measure)
	}
	if _, err := Resolve(layer(t, "rounds=50", "max-rounds=40")); err == nil || !strings.Contains(err.Error(), "--max-rounds must not be less") {
		t.Errorf("got %v", err)
	}
	if _, _, err := FromEnv([]string{"RNNBENCH_HIDDEN=0"}); err == nil || !strings.HasPrefix(err.Error(), "RNNBENCH_HIDDEN: 0 is not allowed") {
		t.Errorf("got %v", err)
	}
	if c := mustResolve(t); c.Measure != Default() || c.Grid.Axes["hidden"] != "512" || len(c.Grid.Axes) != len(axis.All()) {
		t.Errorf("got %+v", c)
	}
}

// Presets, points and zips on the command line replace those of a file, with their axes.
func TestGridLayers(t *testing.T) {
	zipped := "version = 1\n[axes]\nsteps = 9\n[[zip]]\naxes = [\"hidden\", \"batch\"]\nvalues = [[1, 2]]\n"
	for _, c := range []struct {
		file, flags string
		axes        string // resolved steps, hidden, batch
		rest        string // resolved presets, points and number of zips
	}{
		{"version = 1\n[axes]\nhidden = 1\n", "preset=quick", "//", "quick||0"},
		{"version = 1\npreset = \"quick\"\npoint = \"H=1\"\n", "preset=martin", "//", "martin||0"},
		{"version = 1\npreset = \"quick\"\n[axes]\nhidden = 1\nsteps = 9\n", "point=H=4,B=2", "9//", "|H=4,B=2|0"},
		{zipped, "steps=8", "8//", "||1"},
		{zipped, "hidden=8", "9/8/32", "||0"},
		{zipped, "preset=quick", "//", "quick||0"},
		{"version = 1\n[axes]\nhidden = [1, 2]\nbatch = [3, 4]\n", "zip=hidden,batch", "50/1,2/3,4", "||1"},
	} {
		got := mustResolve(t, layer(t, c.flags), mustParse(t, c.file)).Grid
		axes := got.Axes["steps"] + "/" + got.Axes["hidden"] + "/" + got.Axes["batch"]
		rest := strings.Join(got.Presets, ",") + "|" + strings.Join(got.Points, ";") + "|" + string(rune('0'+len(got.Zips)))
		if axes != c.axes || rest != c.rest {
			t.Errorf("%q with %s: got %s and %s, want %s and %s", c.file, c.flags, axes, rest, c.axes, c.rest)
		}
		if _, err := grid.New(got, grid.Vocabulary{Impls: []string{"naive"}}); err != nil {
			t.Errorf("%q with %s: %v", c.file, c.flags, err)
		}
	}
}

func TestPrintReadsBack(t *testing.T) {
	for _, c := range []Config{
		mustResolve(t),
		mustResolve(t, mustParse(t, full)),
		mustResolve(t, layer(t, "preset=quick;martin", "hidden=1:9:x3", "effort=rigorous", "target-ci=0.0123456789")),
		mustResolve(t, layer(t, "point=H=1;H=2,B=3", "steps=1,2", "zip=layers,streams", "layers=1,2", "streams=auto,2", "label=a \"b\"\n\tc")),
	} {
		var b bytes.Buffer
		if err := Print(&b, c); err != nil {
			t.Fatal(err)
		}
		if got := mustResolve(t, mustParse(t, b.String())); !reflect.DeepEqual(got, c) {
			t.Errorf("%s\nreads back as %+v\nwant %+v", b.String(), got, c)
		}
		var tree map[string]any
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &tree); err != nil || tree["measure"].(map[string]any)["warmup"] != c.Measure.Warmup.String() {
			t.Errorf("got %s, %v", data, err)
		}
	}
}

// Every setting has a line of help, a valid default, and a place in the file.
func TestEveryKeyHasHelpAndDefault(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if k.Doc == "" || seen[k.Name] {
			t.Errorf("%s is not documented or twice there", k.Name)
		}
		seen[k.Name] = true
		if k.Default != "" {
			if err := new(Layer).Set(k.Name, k.Default); err != nil {
				t.Errorf("%s does not take its default: %v", k.Name, err)
			}
		}
		if k.Table == "measure" {
			m := Default()
			if err := m.set(k.Name, k.Default); err != nil || m != Default() {
				t.Errorf("the default of %s is not %s", k.Name, k.Default)
			}
		}
		for _, choice := range k.Choices {
			if err := new(Layer).Set(k.Name, choice); err != nil {
				t.Errorf("%s: %v", k.Name, err)
			}
		}
	}
	var fields []string
	for i := range reflect.TypeFor[Measure]().NumField() {
		fields = append(fields, reflect.TypeFor[Measure]().Field(i).Name)
	}
	for _, k := range Keys() {
		if k.Table == "measure" && !slices.ContainsFunc(fields, func(f string) bool { return strings.EqualFold(f, strings.ReplaceAll(k.Name, "-", "")) }) {
			t.Errorf("%s is no field of Measure", k.Name)
		}
	}
	var l Layer
	for _, c := range [][]string{{"hiden", "1"}, {"hidden"}, {"rounds", "1", "2"}} {
		if err := l.Set(c[0], c[1:]...); err == nil {
			t.Errorf("%q is taken", c)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(full)
	f.Add("version = 1\npreset = [\"quick\"]\n[measure]\neffort = \"quick\"\ntarget_ci = 0.3\nbudget = \"1h2m\"\n")
	f.Add("version = 1\npoint = [\"H=1,B=2\"]\nzip = [{axes = [\"layers\", \"steps\"]}]\n")
	f.Add("version = 1\naxes.hidden = 0\n[[exclude]]\nwhere = 3")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse([]byte(text), "f")
		if err != nil {
			return
		}
		c, err := Resolve(l)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := Print(&b, c); err != nil {
			t.Fatal(err)
		}
		l, err = Parse(b.Bytes(), "printed")
		if err != nil {
			t.Fatalf("%s\nprints as\n%s\nwhich is refused: %v", text, b.String(), err)
		}
		again, err := Resolve(l)
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%s\nreads as %+v\nprints as\n%s\nwhich reads as %+v, %v", text, c, b.String(), again, err)
		}
	})
}

// TestModelPrecedence: a model replaces weaker points and the axes that its layers set; a stronger point
// replaces the model.
func TestModelPrecedence(t *testing.T) {
	layer := func(settings ...string) (l Layer) {
		for i := 0; i < len(settings); i += 2 {
			if err := l.Set(settings[i], settings[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		return l
	}
	weak := layer("point", "H=8", "cell", "gru", "batch", "3")
	c, err := Resolve(layer("model", "m.onnx", "layer", "a"), weak)
	if err != nil || len(c.Grid.Points) != 0 || !slices.Equal(c.Grid.Models, []string{"m.onnx"}) || !slices.Equal(c.Grid.Layers, []string{"a"}) {
		t.Errorf("%+v, %v", c.Grid, err)
	}
	if _, kept := c.Grid.Axes["cell"]; kept || c.Grid.Axes["batch"] != "3" {
		t.Errorf("axes are %v", c.Grid.Axes)
	}
	if c, err = Resolve(layer("point", "H=8"), layer("model", "m.onnx", "layer", "a")); err != nil || len(c.Grid.Models)+len(c.Grid.Layers) != 0 {
		t.Errorf("%+v, %v", c.Grid, err)
	}
}
