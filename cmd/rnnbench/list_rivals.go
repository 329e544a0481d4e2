package main

import (
	"path/filepath"
	"slices"
	"strings"

	"rnnbench/internal/exit"
	"rnnbench/internal/safe"
	"rnnbench/plots/table"
	"rnnbench/rival"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
)

// rivalFiles is the pattern of the files that describe rivals in a checkout of the program.
const rivalFiles = "rivals/*.toml"

// rivalTable lists the rivals of a checkout and of --rival. It starts each one once, to see
// whether it can run on this processor.
func rivalTable(l lister) (*table.Table, error) {
	t := words("rival", "file", "version", "missing here")
	found, err := filepath.Glob(filepath.FromSlash(rivalFiles))
	if err != nil {
		return nil, err
	}
	for _, file := range l.rivals {
		if !slices.Contains(found, filepath.Clean(file)) {
			found = append(found, file)
		}
	}
	b, err := bench.OpenDevice(bench.Options{Config: config.Config{Devices: []string{"cpu"}, Measure: config.Default()}}, l)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	for _, file := range found {
		layer, err := config.ReadRivals(file)
		if err != nil {
			return nil, exit.Misuse(err, "see docs/rivals.md")
		}
		c, err := config.Resolve(layer)
		if err != nil {
			return nil, exit.Misuse(err, "see docs/rivals.md")
		}
		for _, r := range c.Rivals {
			version, missing := l.tryRival(r, b)
			t.Rows = append(t.Rows, row(r.Name, file, version, missing))
		}
	}
	if len(found) == 0 {
		t.Notes = []string{"This folder has no " + rivalFiles + ": name a file with --rival FILE. A checkout of rnnbench has some; docs/rivals.md says how to write one."}
	}
	return t, nil
}

// tryRival starts r for the device of b. It returns r's version and what r lacks to run there.
func (l lister) tryRival(r config.Rival, b *bench.Bench) (version, missing string) {
	defer l.Busy("starting rival " + r.Name)()
	started, err := rival.Open(rival.Options{Name: r.Name, Command: r.Command, Devices: r.Devices, Vary: r.Vary, On: b.Info})
	if err != nil {
		return "", strings.Join(strings.Fields(safe.Text(err.Error())), " ")
	}
	missing = "nothing"
	if !started.Runs() {
		missing = "a device that it runs on, which " + b.Info.Name + " is not"
	}
	version = started.Version()
	if err := started.Close(); err != nil {
		missing = err.Error()
	}
	return version, missing
}
