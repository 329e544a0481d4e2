// Package bisect finds since which of several programs, in the order in which they were made, points are
// slower. The first program and the last are compared in turns. Then a program in the middle of those in
// doubt runs in turns with the first, until its share of the slowdown is clearly below or above one half.
// What is measured stays in a folder, from which an interrupted search goes on.
package bisect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"rnnbench/record"
	"rnnbench/record/build"
	"rnnbench/record/compare"
	"rnnbench/record/turns"
)

// A Version is one of the programs.
type Version struct {
	Name string // also the name of its folder
	Note string // such as the subject of its commit
}

// A Search says what to search. Its functions are called one after another.
type Search struct {
	Versions []Version
	Program  func(ctx context.Context, version int) (path string, err error) // build.ErrFailed: there is none, and the version is left out
	Command  []string                                                        // arguments of each program
	Dir      string                                                          // folder of all runs
	Runs     int                                                             // of each program, before a first look
	Most     int                                                             // of each program
	Seed     uint64                                                          // of the order of runs
	Options  compare.Options
	Failures int                   // exit code of a program some of whose points failed
	Start    func(*exec.Cmd) error // as of turns.Turns
	Tell     func(format string, args ...any)
}

// A step is what was found of a version.
type step struct {
	share   record.Interval // of the slowdown, relative to the first version
	runs    int
	slower  bool
	unknown bool   // the share is too near one half, or runs differ too much
	unbuilt string // why the version has no program; "": it has one
}

// A Result is what a search found.
type Result struct {
	Good, Bad int                // the last version that is not slower, and the first that is
	Found     bool               // Bad follows Good
	Slowdown  compare.Slowdown   // of the last version against the first
	First     compare.Comparison // of the last version with the first
	Why       string             // nothing was found; "": it was
}

// Run searches. An error ends the search; the same search goes on from there.
func (s *Search) Run(ctx context.Context) (Result, error) {
	r := Result{Bad: len(s.Versions) - 1}
	if err := s.keep(); err != nil {
		return r, err
	}
	good, err := s.ends(ctx, &r)
	if err != nil || r.Why != "" {
		return r, err
	}
	unbuilt := map[int]bool{}
	for r.Bad-r.Good > 1 {
		at := between(r.Good, r.Bad, unbuilt)
		if at < 0 {
			r.Why = fmt.Sprintf("%s cannot be built", s.names(r.Good+1, r.Bad))
			return r, nil
		}
		found, err := s.look(ctx, at, good, r.Slowdown)
		if err != nil {
			return r, err
		}
		switch {
		case found.unbuilt != "":
			unbuilt[at] = true
			s.Tell("%s is left out: %s", s.Versions[at].Name, found.unbuilt)
		case found.unknown:
			r.Why = fmt.Sprintf("after %d runs %s has %s of the slowdown, which is neither none nor all of it", found.runs, s.Versions[at].Name, share(found.share))
			return r, nil
		case found.slower:
			r.Bad = at
			s.Tell("%s is slower: it has %s of the slowdown after %d runs", s.Versions[at].Name, share(found.share), found.runs)
		default:
			r.Good = at
			s.Tell("%s is not slower: it has %s of the slowdown after %d runs", s.Versions[at].Name, share(found.share), found.runs)
		}
	}
	r.Found = true
	return r, nil
}

// names lists the names of some versions.
func (s *Search) names(from, to int) string {
	var list []string
	for _, v := range s.Versions[from:to] {
		list = append(list, v.Name)
	}
	return strings.Join(list, ", ")
}

// share spells a share of the slowdown with its interval.
func share(v record.Interval) string {
	return fmt.Sprintf("%.0f %% (%.0f to %.0f)", 100*v.Value, 100*v.Lo, 100*v.Hi)
}

// between is the version nearest to the middle of those in doubt that may have a program; -1: there is none.
func between(good, bad int, unbuilt map[int]bool) int {
	middle := (good + bad) / 2
	for d := range bad - good {
		for _, at := range []int{middle + d, middle - d} {
			if at > good && at < bad && !unbuilt[at] {
				return at
			}
		}
	}
	return -1
}

// ends compares the last version with the first, until a point is slower.
func (s *Search) ends(ctx context.Context, r *Result) (good string, err error) {
	last := len(s.Versions) - 1
	var bad string
	if good, err = s.Program(ctx, 0); err != nil {
		return "", fmt.Errorf("%s: %w", s.Versions[0].Name, err)
	}
	if bad, err = s.Program(ctx, last); err != nil {
		return "", fmt.Errorf("%s: %w", s.Versions[last].Name, err)
	}
	err = s.measure(ctx, last, good, bad, func(base, other compare.Side) (bool, error) {
		list, err := compare.Runs(base, []compare.Side{other}, s.Options)
		if err != nil {
			return false, err
		}
		r.First = list[0]
		r.Slowdown = compare.SlowdownOf(&r.First, s.Options)
		return len(r.Slowdown.Changes) > 0, nil
	})
	if err == nil && len(r.Slowdown.Changes) == 0 {
		r.Why = fmt.Sprintf("after %d runs no point is slower in %s than in %s beyond chance and by %.0f %%; runs differ by %.1f %%",
			s.Most, s.Versions[last].Name, s.Versions[0].Name, 100*s.Options.MinEffect, 100*r.First.Spread)
	}
	return good, err
}

// confident is the confidence of a share of the slowdown. It is high, since each look may err.
const confident = 0.99

// look measures a version in turns with the first, until its share of the slowdown is clear.
func (s *Search) look(ctx context.Context, at int, good string, slow compare.Slowdown) (step, error) {
	var found step
	path, err := s.Program(ctx, at)
	if errors.Is(err, build.ErrFailed) {
		found.unbuilt = err.Error()
		return found, nil
	}
	if err != nil {
		return found, err
	}
	o := s.Options
	o.Level = confident
	err = s.measure(ctx, at, good, path, func(base, other compare.Side) (bool, error) {
		v, err := slow.Share(base, other, o)
		found.share, found.runs = v, len(other.Runs)
		found.slower, found.unknown = v.Lo > 0.5, !(v.Lo > 0.5 || v.Hi < 0.5)
		return !found.unknown, err
	})
	return found, err
}

// measure runs a version in turns with the first until enough is true, or both have s.Most runs. Runs that
// an earlier search finished count.
func (s *Search) measure(ctx context.Context, at int, good, path string, enough func(base, other compare.Side) (bool, error)) error {
	t := turns.Turns{
		Programs: [2]turns.Program{{Label: s.Versions[0].Name, Path: good}, {Label: s.Versions[at].Name, Path: path}},
		Command:  s.Command, Runs: s.Runs, Seed: s.Seed + uint64(at), Failures: s.Failures, Start: s.Start,
		Dir: filepath.Join(s.Dir, s.Versions[at].Name),
	}
	if err := t.Continue(); err != nil {
		return err
	}
	for {
		if n := t.Runs - min(len(t.Done[0]), len(t.Done[1])); n > 0 {
			t.Runs = n
			if err := t.Run(ctx, func(x turns.Turn) {
				s.Tell("%s in turns: run %d of %d, %s", s.Versions[at].Name, x.Run, x.All, x.Label)
			}); err != nil {
				return err
			}
		}
		base, err := side(t, 0)
		if err != nil {
			return err
		}
		other, err := side(t, 1)
		if err != nil {
			return err
		}
		done, err := enough(base, other)
		if err != nil || done || len(other.Runs) >= s.Most {
			return err
		}
		t.Runs = min(s.Most, len(other.Runs)+2)
		t.Seed++
	}
}

// side is one of the programs with its finished runs.
func side(t turns.Turns, i int) (compare.Side, error) {
	sets, err := t.Read(i)
	return compare.Side{Label: t.Programs[i].Label, Runs: sets}, err
}

// searchFile says what a folder's runs were made for.
const searchFile = "bisect.json"

// keep notes what is searched, and refuses the folder of another search.
func (s *Search) keep() error {
	if err := os.MkdirAll(s.Dir, 0o777); err != nil {
		return err
	}
	return turns.Claim(filepath.Join(s.Dir, searchFile), struct {
		Versions []Version
		Command  []string
	}{s.Versions, s.Command})
}
