// Package job measures agendas into runs. A Request says what is wanted; a Job is that on an open device:
// the shard to measure, the run to resume, what is still missing, and how it ended.
package job

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"rnnbench/cluster"
	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/agenda"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
)

// A Request says what to measure, on what and how, and what becomes of the run. It is made once from flags,
// environment and files.
type Request struct {
	bench.Options
	Layers []config.Layer // that the settings are resolved from, the strongest first
	Argv   []string       // for the manifest

	Resume        string // run to resume: its folder, id or label, or Latest; "": none
	RetryFailed   bool   // points without a result are measured again
	AllowFailures bool   // failed points are no error if one succeeded
	HideHost      bool   // the run does not name the host
	DryRun        bool   // nothing is measured
	Profile       bool   // an external profiler watches: the run is put aside

	Shard     string // "I/N", or NoShard; "": that of a scheduler's array of jobs
	Submitted string // version of the program that submitted this job; "": nobody did
	Required  string // key of the device that it was submitted for; "": that of the first shard

	part  *record.Shard // the shard to measure; nil: the whole agenda, or that of the job in array
	array *agenda.Array // the job of a scheduler's array, until its part is known; nil: none
}

// Latest is the Resume of the latest run or session in the results folder.
const Latest = "the latest"

// NoShard is the Shard that measures the whole agenda.
const NoShard = "off"

// Prepare checks the request, and reads the run to resume: its settings lie below those given now. It
// returns that run's manifest; nil: there is none. No device is opened yet.
func (r *Request) Prepare() (*record.Manifest, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	if r.Resume == "" {
		return nil, nil
	}
	return r.Resumed()
}

// Check checks what is wanted of the run to resume and of the shard, and finds the shard.
func (r *Request) Check() error {
	if r.RetryFailed && r.Resume == "" && r.Shard == "" {
		return errors.New("--retry-failed needs --resume RUN")
	}
	return r.readShard()
}

// Base resolves the settings again, above those of an earlier run.
func (r *Request) Base(was config.Layer) (err error) {
	r.Config, err = config.Resolve(append(slices.Clone(r.Layers), was)...)
	return err
}

// readShard sets the part from Shard, or the array from the scheduler.
func (r *Request) readShard() error {
	r.part, r.array = nil, nil
	if r.Submitted != "" {
		if err := r.thisNode().SameVersion(r.Submitted); err != nil {
			return exit.Misuse(err, "have all machines run the same binary, or use submit --copy")
		}
	}
	switch {
	case r.Shard == NoShard:
		return nil
	case r.Shard != "":
		read := agenda.ParseShard
		if strings.Contains(r.Shard, ",") {
			read = func(text string) (record.Shard, error) { return agenda.OneOf(text, os.Getenv) }
		}
		s, err := read(r.Shard)
		if err != nil {
			return fmt.Errorf("--shard: %w", err)
		}
		r.part = &s
	case r.Resume == "": // a run to resume knows its shard
		a, err := agenda.FromScheduler(os.Getenv)
		if err != nil {
			return exit.Misuse(err, arrayHint)
		}
		if a == nil {
			return nil
		}
		r.array = a
	default:
		return nil
	}
	if r.Profile {
		return errors.New("--profile measures the whole plan: add --shard off")
	}
	if r.Race {
		return errors.New("--auto race measures while the plan is made, so shards would differ: use --auto predict, or add --shard off")
	}
	return nil
}

// arrayHint is the hint where the variables of a scheduler do not name a shard.
const arrayHint = "use --shard I/N to name the shard, or --shard off to measure the whole plan"

// Divided reports whether one shard is to be measured.
func (r *Request) Divided() bool { return r.part != nil || r.array != nil }

// thisNode describes this machine for the checks of a submitted job.
func (r *Request) thisNode() cluster.Node {
	return cluster.Node{Name: cluster.ThisNode(r.HideHost), Version: r.Version}
}

// Resumed reads the run to resume, and lays its settings below those given now. It returns its manifest.
func (r *Request) Resumed() (*record.Manifest, error) {
	dir := r.Config.Dir
	if r.Resume == Latest {
		r.Resume = dir
	}
	m, _, _, err := record.Read(record.Find(r.Resume, dir))
	if err != nil {
		return nil, exit.With(exit.Error, err, "rnnbench show prints the latest run")
	}
	if err := m.Resumable(); err != nil {
		return nil, exit.Misuse(err, "rnnbench show "+r.Resume+" still prints its records")
	}
	if len(m.Config) == 0 {
		return nil, exit.With(exit.Error, fmt.Errorf("run %s cannot be resumed: cannot read its settings from manifest.json", r.Resume),
			"rnnbench show "+r.Resume+" can still read the records")
	}
	was, err := config.FromJSON(m.Config)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", m.Run, err)
	}
	if err := r.Base(was); err != nil {
		return nil, err
	}
	c := r.Config
	if err := resumableWith(c, &m); err != nil {
		return nil, err
	}
	if c.Label != "" && c.Label != m.Label {
		has := "none"
		if m.Label != "" {
			has = strconv.Quote(m.Label)
		}
		return nil, fmt.Errorf("run %s cannot be resumed with another label: its label is %s, not %q: omit --label", m.Run, has, c.Label)
	}
	return &m, nil
}

// resumableWith returns an error if settings c have other inputs or another state of caches than run m.
func resumableWith(c config.Config, m *record.Manifest) error {
	was, err := config.FromJSON(m.Config)
	if err != nil {
		return fmt.Errorf("run %s: %w", m.Run, err)
	}
	old, err := config.Resolve(was)
	if err != nil {
		return fmt.Errorf("run %s: %w", m.Run, err)
	}
	if c.Measure.Seed != old.Measure.Seed || c.Measure.Data != old.Measure.Data {
		return fmt.Errorf("run %s cannot be resumed: its inputs are %s with seed %d, but the requested inputs are %s with seed %d",
			m.Run, old.Measure.Data, old.Measure.Seed, c.Measure.Data, c.Measure.Seed)
	}
	if c.Measure.Cache != old.Measure.Cache {
		return fmt.Errorf("run %s cannot be resumed: it used %s caches, but the requested setting is %s", m.Run, old.Measure.Cache, c.Measure.Cache)
	}
	return nil
}
