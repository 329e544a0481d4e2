package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"rnnbench/internal/tomlfile"
)

// A Rival is another program that may run as a technique.
type Rival struct {
	Name    string
	Command []string // program and arguments; relative paths start where rnnbench runs, after from
	Devices []string // devices to run it on; none: those that it supports
	Vary    []string // knobs whose values experiments compare; none: all its knobs
}

// rival is a [[rival]] table of a file.
type rival struct {
	Name    any `toml:"name" json:"name"`
	Command any `toml:"command" json:"command"`
	Devices any `toml:"devices,omitempty" json:"devices,omitempty"`
	Vary    any `toml:"vary,omitempty" json:"vary,omitempty"`
}

const (
	mostRivals = 32
	mostWords  = 256 // of a command
)

var rivalName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// parse reads a rival of a file.
func (r rival) parse() (Rival, error) {
	out := Rival{}
	name, ok := r.Name.(string)
	if !ok || !rivalName.MatchString(name) {
		return out, errors.New("its name must be a word of small letters, digits and hyphens: write name = \"pytorch\"")
	}
	out.Name = name
	var err error
	if out.Command, err = texts(r.Command); err != nil || out.Command[0] == "" || len(out.Command) > mostWords {
		return out, fmt.Errorf("the command of %s is missing or not a list of words: write command = [\"python3\", \"rivals/pytorch.py\"]", name)
	}
	if r.Devices != nil {
		if out.Devices, err = texts(r.Devices); err != nil {
			return out, fmt.Errorf("devices: %w", err)
		}
	}
	if r.Vary != nil {
		if out.Vary, err = texts(r.Vary); err != nil {
			return out, fmt.Errorf("vary: %w", err)
		}
	}
	for _, d := range out.Devices {
		if kind, _, _ := strings.Cut(d, ":"); kind != "cpu" && kind != "cuda" {
			return out, fmt.Errorf("devices: %q is unknown: write cpu, cuda or cuda:0", d)
		}
	}
	return out, nil
}

// addRivals reads the rivals of a file.
func (l *Layer) addRivals(list []rival, s *source) {
	for i, r := range list {
		path := fmt.Sprintf("rival[%d]", i)
		parsed, err := r.parse()
		switch {
		case err != nil:
		case slices.ContainsFunc(l.rivals, func(o Rival) bool { return o.Name == parsed.Name }):
			err = fmt.Errorf("two rivals are named %s: remove one", parsed.Name)
		case len(l.rivals) == mostRivals:
			err = fmt.Errorf("there are more than %d rivals", mostRivals)
		}
		if err != nil {
			s.report(path, err)
			continue
		}
		if s.name != "" {
			parsed.from(filepath.Dir(s.name))
		}
		l.rivals = append(l.rivals, parsed)
	}
}

// ReadRivals reads a file that may only have [[rival]] tables, at least one.
func ReadRivals(path string) (Layer, error) {
	data, err := tomlfile.ReadFile(path)
	if err != nil {
		return Layer{}, fmt.Errorf("--rival: %w", err)
	}
	l, err := Parse(data, path)
	switch {
	case err != nil:
		return l, err
	case len(l.values) > 0 || l.zips != nil || l.exclude != nil:
		return l, fmt.Errorf("--rival: %s: a file for --rival may only have [[rival]] tables: read other settings with --config", path)
	case len(l.rivals) == 0:
		return l, fmt.Errorf("--rival: %s: it has no [[rival]]", path)
	}
	return l, nil
}

// merge puts the rivals of a stronger layer before those of weaker ones. Of two with one name it keeps
// the stronger layer's.
func merge(stronger, weaker []Rival) []Rival {
	out := slices.Clone(stronger)
	for _, r := range weaker {
		if !slices.ContainsFunc(out, func(o Rival) bool { return o.Name == r.Name }) {
			out = append(out, r)
		}
	}
	return out
}

// documents converts rivals to the form of the file.
func documents(rivals []Rival) []rival {
	var out []rival
	for _, r := range rivals {
		d := rival{Name: r.Name, Command: r.Command}
		if len(r.Devices) > 0 {
			d.Devices = r.Devices
		}
		if len(r.Vary) > 0 {
			d.Vary = r.Vary
		}
		out = append(out, d)
	}
	return out
}

// from replaces the words of r's command that name a file below folder, which its own file is in. All
// other words stay: options, programs that are looked up on the path, and files of the current folder.
func (r *Rival) from(folder string) {
	is := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode().IsRegular()
	}
	for i, word := range r.Command {
		named := strings.ContainsAny(word, `/\`)
		if filepath.IsAbs(word) || i == 0 && !named {
			continue
		}
		path := filepath.Join(folder, word)
		if !is(path) && (i > 0 || is(word)) {
			continue
		}
		if i == 0 && !strings.ContainsAny(path, `/\`) {
			path = "." + string(filepath.Separator) + path // else it would be looked up on the path
		}
		r.Command[i] = path
	}
}
