package config

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnnbench/internal/tomlfile"
	"rnnbench/rnn/axis"
	"rnnbench/tuner/grid"
)

//go:embed networks/*.toml
var networks embed.FS

// A Network is a network with a name: a built-in file of the axes that say what it is.
type Network struct {
	Name, Doc string
	Axes      map[string]string
}

// Networks lists the built-in networks.
func Networks() []Network {
	paths, _ := fs.Glob(networks, "networks/*.toml") // it is embedded
	var all []Network
	for _, path := range paths {
		text, _ := networks.ReadFile(path)
		name := networkName(path)
		n := Network{Name: name, Axes: map[string]string{}}
		n.Doc, _, _ = strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		if l, err := parseNetwork(text, name); err == nil {
			for axis, values := range l.values {
				n.Axes[axis] = values[0]
			}
		}
		all = append(all, n)
	}
	return all
}

// networkName is the name of the network of a built-in file: speech-small.toml is speech:small.
func networkName(path string) string {
	return strings.Replace(strings.TrimSuffix(filepath.Base(path), ".toml"), "-", ":", 1)
}

// ReadNetwork reads a network: a built-in one, or a file that may only have axes that say what a network is.
// The name of a cell's file is looked up in the folder of the network's file first.
func ReadNetwork(name string) (Layer, error) {
	var names []string
	for _, n := range Networks() {
		if names = append(names, n.Name); n.Name == name {
			text, err := networks.ReadFile("networks/" + strings.Replace(name, ":", "-", 1) + ".toml")
			if err != nil {
				return Layer{}, err
			}
			return parseNetwork(text, name)
		}
	}
	text, err := tomlfile.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(name, ".toml") {
		return Layer{}, grid.Unknown("network", name, names)
	}
	if err != nil {
		return Layer{}, fmt.Errorf("--network: %w", err)
	}
	l, err := parseNetwork(text, name)
	if cells, ok := l.values["cell"]; ok {
		l.values["cell"] = []string{besideFile(cells[0], filepath.Dir(name))}
	}
	return l, err
}

// parseNetwork reads the text of a network's file; name is for messages.
func parseNetwork(text []byte, name string) (Layer, error) {
	l, err := Parse(text, name)
	if err != nil {
		return l, err
	}
	for _, key := range slices.Sorted(maps.Keys(l.values)) {
		if a, ok := axis.Named(key); !ok || !a.Network {
			return l, fmt.Errorf("--network: %s: %s does not say what a network is, but how it is run: set it by a flag or in a file for --config", name, key)
		}
	}
	switch {
	case l.zips != nil || l.exclude != nil || l.rivals != nil:
		return l, fmt.Errorf("--network: %s: a file for --network may only have axes: read other settings with --config", name)
	case len(l.values) == 0:
		return l, fmt.Errorf("--network: %s: it has no axes: write them below [axes]", name)
	}
	return l, nil
}

// besideFile replaces names of cells' files by those in folder, where there are such.
func besideFile(list, folder string) string {
	names := strings.Split(list, ",")
	for i, name := range names {
		name = strings.TrimSpace(name)
		if path := filepath.Join(folder, name); strings.HasSuffix(name, ".cell") && !filepath.IsAbs(name) {
			if _, err := os.Stat(path); err == nil {
				names[i] = path
			}
		}
	}
	return strings.Join(names, ",")
}
