// Package config resolves the user's settings. Flags come first, then environment
// variables, then a file, then presets and defaults.
//
// A setting has one name everywhere: the flag --max-rounds is the variable
// RNNBENCH_MAX_ROUNDS and the key max_rounds in the file. The package uses no
// command line library, and knows devices and techniques only by name.
package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/rnn/axis"
	"rnnbench/tuner/grid"
)

// Version is the version of the file.
const Version = 1

// Dir is the default folder for runs. It is not "results", which in a checkout holds the recorded ones.
const Dir = "out"

// A Config holds the resolved settings.
type Config struct {
	Label   string
	Devices []string
	Grid    grid.Request
	Measure Measure
	Dir     string // where runs are kept
	Rivals  []Rival
}

// A Key is one setting.
type Key struct {
	Name    string // of the flag, without leading hyphens
	Table   string // of the file; "" for the top
	Doc     string
	Default string
	Choices []string // none: any valid value
	List    bool     // may be given several times
}

// Path is the key's place in a file.
func (k Key) Path() string {
	name := strings.ReplaceAll(k.Name, "-", "_")
	if k.Name == "out" {
		name = "dir"
	}
	if k.Table != "" {
		return k.Table + "." + name
	}
	return name
}

// Env is the variable that sets the key. Several values are separated by
// semicolons.
func (k Key) Env() string {
	return "RNNBENCH_" + strings.ToUpper(strings.ReplaceAll(k.Name, "-", "_"))
}

// Keys lists the settings in the order of help.
func Keys() []Key {
	var keys []Key
	for _, a := range axis.All() {
		keys = append(keys, Key{Name: a.Name, Table: "axes", Doc: a.Help, Default: a.Default})
	}
	d := Default()
	keys = append(keys,
		Key{Name: "impl", Table: "axes", Doc: "techniques, each with its knobs: naive,cudnnstyle:fused=0; auto: chosen at each point", Default: "all", List: true},
		Key{Name: "skip-impl", Table: "axes", Doc: "techniques to skip", List: true},
		Key{Name: "preset", Doc: "named points to start from", List: true},
		Key{Name: "point", Doc: "exact point, such as H=1024,B=32,T=100", List: true},
		Key{Name: "model", Doc: "model's file, whose recurrent layers are measured with their own weights: ONNX, safetensors or a PyTorch state_dict", List: true},
		Key{Name: "layer", Doc: "layer of --model; default: all (see rnnbench list layers)", List: true},
		Key{Name: "zip", Doc: "axes to vary in lock-step, such as hidden,batch", List: true},
		Key{Name: "where", Doc: "condition that points must meet, such as hidden<=2048 or mem<=16GiB", List: true},
		Key{Name: "device", Doc: "devices to measure on", Default: "cpu", List: true},
		Key{Name: "label", Doc: "name of the run in tables and legends"},
		Key{Name: "out", Table: "output", Doc: "folder for runs", Default: Dir},
	)
	for _, k := range []Key{
		{Name: "effort", Doc: "how much time to spend; sets the rounds and times below"},
		{Name: "rounds", Doc: "samples of each technique"},
		{Name: "max-rounds", Doc: "maximum samples, taken while the interval is wider than the target"},
		{Name: "warmup", Doc: "time to run before the first sample"},
		{Name: "min-time", Doc: "minimum length of a sample"},
		{Name: "min-iters", Doc: "minimum runs in a sample"},
		{Name: "target-ci", Doc: "target half-width of the median's interval"},
		{Name: "point-timeout", Doc: "time limit for one technique at one point; 0: no limit"},
		{Name: "budget", Doc: "total time limit; the first point of a sweep always completes; 0: no limit"},
		{Name: "until", Doc: "when to end sampling: times are precise, or the winner is clear"},
		{Name: "order", Doc: "order of the samples"},
		{Name: "seed", Doc: "seed for inputs and order"},
		{Name: "cache", Doc: "cache state before a sample"},
		{Name: "data", Doc: "distribution of the inputs"},
		{Name: "verify", Doc: "check each answer before timing it"},
		{Name: "on-error", Doc: "what to do after a failed point"},
		{Name: "threads", Doc: "CPU threads; 0: all"},
		{Name: "energy", Doc: "also count the energy of each technique, which takes some seconds"},
		{Name: "isolate", Doc: "measure in a worker process; auto: GPUs only"},
	} {
		k.Table, k.Default, k.Choices = "measure", fmt.Sprint(d.value(k.Name)), choicesOf(k.Name)
		keys = append(keys, k)
	}
	return keys
}

// keyNamed finds a key by the name of its flag.
func keyNamed(name string) (Key, error) {
	keys := Keys()
	if i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name }); i >= 0 {
		return keys[i], nil
	}
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	if near := grid.Nearest(name, names); near != "" {
		return Key{}, fmt.Errorf("unknown setting %q: did you mean %s?", name, near)
	}
	return Key{}, fmt.Errorf("unknown setting %q", name)
}

// choicesOf lists the words that a setting accepts; nil: it takes other values.
func choicesOf(name string) []string {
	switch name {
	case "effort":
		return []string{"quick", "normal", "rigorous"}
	case "until":
		return []string{"precise", UntilClear}
	case "order":
		return []string{"interleaved", "random", "sequential"}
	case "cache":
		return []string{"hot", "cold"}
	case "data":
		return []string{"normal", "uniform", "zeros"}
	case "on-error":
		return []string{"continue", "stop"}
	case "isolate":
		return []string{"auto", "on", "off"}
	}
	return nil
}

// A Layer holds the settings of one source. Weaker layers decide what it leaves open. The zero Layer
// sets nothing.
type Layer struct {
	values  map[string][]string // by the name of the flag
	zips    []grid.Zip
	exclude [][]string
	rivals  []Rival
}

// checkLabel returns an error for a label by which no command could name the run: another meaning of the
// word comes first.
func checkLabel(v string) error {
	switch {
	case len(v) > maxLabel:
		return fmt.Errorf("it has %d characters: use at most %d", len(v), maxLabel)
	case v[0] == '-':
		return fmt.Errorf("%q would be read as a flag where it names the run: begin it with another character", v)
	case v == "." || v == ".." || v == "latest":
		return fmt.Errorf("%q is a folder or the latest run wherever it names a run: use another word", v)
	}
	return nil
}

// maxLabel is the length of the longest label of a run, in bytes.
const maxLabel = 100

// Set sets one setting to a value, or a list to several. It replaces the layer's earlier value. The
// error does not name the setting.
func (l *Layer) Set(name string, values ...string) error {
	k, err := keyNamed(name)
	if err != nil {
		return err
	}
	if len(values) == 0 {
		return errors.New("it has no value: write one, or remove the setting")
	}
	if k.Table == "axes" && !k.List {
		values = []string{strings.Join(values, ",")}
	}
	if !k.List && len(values) > 1 {
		return fmt.Errorf("it takes one value, not %d", len(values))
	}
	if name == "preset" || name == "device" || name == "impl" || name == "skip-impl" {
		values = strings.Split(strings.Join(values, ","), ",")
	}
	var zips []grid.Zip
	for i, v := range values {
		v = strings.TrimSpace(v)
		values[i] = v
		var err error
		switch {
		case k.Table == "measure":
			err = new(Measure).set(name, v)
		case k.Table == "axes" && !k.List:
			err = grid.CheckAxis(name, v)
		case v == "":
			err = errors.New("it is empty: write a value, or remove the setting")
		case name == "label":
			err = checkLabel(v)
		case name == "impl" && v == "all":
		case name == "impl" || name == "skip-impl":
			_, err = grid.ParseSpec(v, nil)
		case name == "preset":
			err = grid.CheckPreset(v)
		case name == "point":
			_, err = grid.ParsePoint(v)
		case name == "where":
			_, err = grid.ParseCondition(v)
		case name == "zip":
			var z grid.Zip
			z, err = grid.ParseZip(v)
			zips = append(zips, z)
		}
		if err != nil {
			return err
		}
	}
	if name == "zip" {
		l.zips = zips
		return nil
	}
	if l.values == nil {
		l.values = map[string][]string{}
	}
	l.values[name] = values
	return nil
}

// FromEnv reads the variables named RNNBENCH_… of an environment in the form of os.Environ. An empty
// variable sets nothing. Warnings name unknown variables with that prefix.
func FromEnv(environ []string) (Layer, []string, error) {
	var l Layer
	var warnings []string
	names := map[string]string{"RNNBENCH_RESULTS": "out"}
	for _, k := range Keys() {
		names[k.Env()] = k.Name
	}
	others := []string{"RNNBENCH_CUDA", "RNNBENCH_CUDA_LIBS", "RNNBENCH_LIBRARY", "RNNBENCH_WISDOM", "RNNBENCH_SIMD"} // read elsewhere
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		variable, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(variable, "RNNBENCH_") || value == "" || slices.Contains(others, variable) {
			continue
		}
		name, ok := names[variable]
		if !ok {
			w := fmt.Sprintf("unknown environment variable %s", variable)
			if near := grid.Nearest(variable, slices.Sorted(maps.Keys(names))); near != "" {
				w += ": did you mean " + near + "?"
			}
			warnings = append(warnings, w)
			continue
		}
		if err := l.Set(name, strings.Split(value, ";")...); err != nil {
			return l, warnings, fmt.Errorf("%s: %w", variable, err)
		}
	}
	return l, warnings, nil
}

// Resolve combines layers, the strongest first. Each setting comes from the
// strongest layer that has it. Three more rules expand names:
//
//   - an effort replaces the rounds and times of weaker layers;
//   - a preset replaces the presets, points, zips and axes of weaker layers;
//   - points and models replace the presets, points, models and zips of weaker layers, and
//     the axes that every one of them sets.
func Resolve(layers ...Layer) (Config, error) {
	c := Config{Devices: []string{"cpu"}, Measure: Default(), Dir: Dir}
	c.Grid.Axes = map[string]string{}
	maxSet := false
	for _, l := range slices.Backward(layers) {
		l.applyGrid(&c.Grid)
		c.Rivals = merge(l.rivals, c.Rivals)
		if v, ok := l.values["label"]; ok {
			c.Label = v[0]
		}
		if v, ok := l.values["device"]; ok {
			c.Devices = slices.Clone(v)
		}
		if v, ok := l.values["out"]; ok {
			c.Dir = v[0]
		}
		if v, ok := l.values["effort"]; ok {
			c.Measure.apply(v[0])
			maxSet = false
		}
		for _, name := range slices.Sorted(maps.Keys(l.values)) {
			if k, err := keyNamed(name); err != nil || k.Table != "measure" {
				continue
			}
			if err := c.Measure.set(name, l.values[name][0]); err != nil {
				return c, fmt.Errorf("--%s: %w", name, err)
			}
			maxSet = maxSet || name == "max-rounds"
		}
	}
	if c.Measure.Energy && c.Measure.Cache == "cold" {
		return c, errors.New("energy is counted while a technique runs back to back: use --cache hot with --energy")
	}
	if m := &c.Measure; m.MaxRounds < m.Rounds {
		if maxSet {
			return c, fmt.Errorf("--max-rounds is %d and --rounds is %d: --max-rounds must not be less", m.MaxRounds, m.Rounds)
		}
		m.MaxRounds = m.Rounds
	}
	if c.Grid.Plain() {
		for _, a := range axis.All() {
			_, given := c.Grid.Axes[a.Name]
			zipped := slices.ContainsFunc(c.Grid.Zips, func(z grid.Zip) bool { return slices.Contains(z.Axes, a.Name) })
			if !given && !zipped {
				c.Grid.Axes[a.Name] = a.DefaultAt(c.Grid.Axes)
			}
		}
	}
	return c, nil
}

// applyGrid puts l's settings on top of g, which holds those of weaker layers.
func (l *Layer) applyGrid(g *grid.Request) {
	list := func(name string, into *[]string) {
		if v, ok := l.values[name]; ok {
			*into = slices.Clone(v)
		}
	}
	if _, ok := l.values["preset"]; ok {
		g.Points, g.Models, g.Layers, g.Zips = nil, nil, nil, nil
		clear(g.Axes)
		list("preset", &g.Presets)
	}
	points, pointed := l.values["point"]
	models, modelled := l.values["model"]
	if pointed || modelled {
		g.Points, g.Models, g.Layers, g.Zips = slices.Clone(points), slices.Clone(models), nil, nil
		if _, both := l.values["preset"]; !both {
			g.Presets = nil
		}
		for name := range g.Axes {
			if everyPointSets(points, name) && (!modelled || slices.Contains(grid.ModelAxes(), name)) {
				delete(g.Axes, name)
			}
		}
	}
	list("layer", &g.Layers)
	for _, name := range axis.Names() {
		if v, ok := l.values[name]; ok {
			g.Axes[name] = v[0]
			g.Zips = slices.DeleteFunc(g.Zips, func(z grid.Zip) bool { return z.Rows != nil && slices.Contains(z.Axes, name) })
		}
	}
	if l.zips != nil {
		g.Zips = slices.Clone(l.zips)
		for _, z := range l.zips {
			for _, name := range z.Axes {
				if _, own := l.values[name]; z.Rows != nil && !own {
					delete(g.Axes, name)
				}
			}
		}
	}
	list("where", &g.Where)
	list("impl", &g.Impl)
	list("skip-impl", &g.SkipImpl)
	if l.exclude != nil {
		g.Exclude = slices.Clone(l.exclude)
	}
}

// everyPointSets reports whether every point sets the axis.
func everyPointSets(points []string, axis string) bool {
	for _, text := range points {
		p, err := grid.ParsePoint(text)
		if _, ok := p[axis]; err != nil || !ok {
			return false
		}
	}
	return true
}
