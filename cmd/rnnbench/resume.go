package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rnnbench/record"
	"rnnbench/tuner/config"
)

// resumeLatest is the value of a --resume without one: the latest run or session in the results
// folder.
const resumeLatest = "the latest"

// bareResume gives --resume the value resumeLatest if it has none.
func bareResume(args []string) []string {
	i := slices.Index(args, "--resume")
	if i < 0 || i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") || slices.Contains(args[:i], "--") {
		return args
	}
	args = slices.Clone(args)
	args[i] = "--resume=" + resumeLatest
	return args
}

// resumed reads the run to resume. It returns its settings, overridden by those given now, and
// its manifest.
func (f *sweepFlags) resumed(p *program, dir string) (config.Config, *record.Manifest, error) {
	if f.resume == resumeLatest {
		f.resume = dir
	}
	m, _, _, err := record.Read(runPath(f.resume, dir))
	if err != nil {
		return config.Config{}, nil, &failure{exitError, err, "rnnbench show prints the latest run"}
	}
	if err := m.Resumable(); err != nil {
		return config.Config{}, nil, usage(err, "rnnbench show "+f.resume+" still prints its records")
	}
	if len(m.Config) == 0 {
		return config.Config{}, nil, &failure{exitError, fmt.Errorf("run %s cannot be resumed: cannot read its settings from manifest.json", f.resume),
			"rnnbench show " + f.resume + " can still read the records"}
	}
	was, err := config.FromJSON(m.Config)
	if err != nil {
		return config.Config{}, nil, fmt.Errorf("run %s: %w", m.Run, err)
	}
	c, err := f.resolve(p, was)
	if err != nil {
		return c, nil, err
	}
	old, err := config.Resolve(was)
	if err != nil {
		return c, nil, fmt.Errorf("run %s: %w", m.Run, err)
	}
	if err := sameInputs(c, old, &m); err != nil {
		return c, nil, err
	}
	if c.Label != "" && c.Label != m.Label {
		has := "none"
		if m.Label != "" {
			has = strconv.Quote(m.Label)
		}
		return c, nil, fmt.Errorf("run %s cannot be resumed with another label: its label is %s, not %q: omit --label", m.Run, has, c.Label)
	}
	return c, &m, nil
}

// sameInputs returns an error if c has other inputs or another state of caches than the run with
// settings old.
func sameInputs(c, old config.Config, m *record.Manifest) error {
	if c.Measure.Seed != old.Measure.Seed || c.Measure.Data != old.Measure.Data {
		return fmt.Errorf("run %s cannot be resumed: its inputs are %s with seed %d, but the requested inputs are %s with seed %d",
			m.Run, old.Measure.Data, old.Measure.Seed, c.Measure.Data, c.Measure.Seed)
	}
	if c.Measure.Cache != old.Measure.Cache {
		return fmt.Errorf("run %s cannot be resumed: it used %s caches, but the requested setting is %s", m.Run, old.Measure.Cache, c.Measure.Cache)
	}
	return nil
}
