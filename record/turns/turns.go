// Package turns runs the same measurement by two programs in turns, so that changes of the machine
// affect both alike.
package turns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnnbench/record"
)

// LeastRuns is the fewest runs of a program that show how far its runs differ.
const LeastRuns = 3

// A Program is one of the two programs.
type Program struct {
	Label string // also the name of its folder
	Path  string
}

// Turns says which programs run, and what they measure.
type Turns struct {
	Programs [2]Program
	Command  []string // arguments of each program
	Runs     int      // of each program
	Seed     uint64   // of the order
	Failures int      // exit code that says that some points failed

	// Start starts a program so that it ends with this process; nil: (*exec.Cmd).Start.
	Start func(*exec.Cmd) error

	Dir  string      // folder of all runs
	Done [2][]string // folders of the finished runs of each program
}

// A Failure is the end of a program that failed. Exit is nil if the program did not begin.
type Failure struct {
	error
	Exit *exec.ExitError
}

// A Turn describes a finished run.
type Turn struct {
	Label    string
	Run, All int // its number, from 1, and the number of all runs
	Records  int
	Took     time.Duration
}

// Find resolves the programs: a Path is a file, or a name to find in PATH.
func (t *Turns) Find() error {
	for i := range t.Programs {
		p := &t.Programs[i]
		find := exec.LookPath
		if _, err := os.Stat(p.Path); err == nil {
			find = filepath.Abs
		}
		path, err := find(p.Path)
		if err != nil {
			return fmt.Errorf("cannot run program %s: %w", p.Label, err)
		}
		p.Path = path
	}
	return nil
}

// MakeFolder creates the folder of all runs in dir, named after start.
func (t *Turns) MakeFolder(dir string, start time.Time) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	name := filepath.Join(dir, "ab-"+start.UTC().Format("20060102T150405Z"))
	t.Dir = name
	err := os.Mkdir(t.Dir, 0o777)
	for n := 2; errors.Is(err, os.ErrExist); n++ {
		t.Dir = fmt.Sprintf("%s-%d", name, n)
		err = os.Mkdir(t.Dir, 0o777)
	}
	return err
}

// Continue finds the finished runs of each program in Dir.
func (t *Turns) Continue() error {
	for i, p := range t.Programs {
		t.Done[i] = nil
		folder := filepath.Join(t.Dir, p.Label)
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			run := filepath.Join(folder, e.Name())
			m, err := record.ReadManifest(run)
			if err == nil && m.Finished != nil && m.Exit != nil && (*m.Exit == 0 || *m.Exit == t.Failures) {
				t.Done[i] = append(t.Done[i], run)
			}
		}
	}
	return nil
}

// order returns the sequence of runs. They are pairs of both programs, and every second pair is
// reversed, so that a machine that slows down slows both programs alike.
func order(runs int, seed uint64) []int {
	rng := rand.New(rand.NewPCG(seed, 0))
	var list []int
	for len(list) < 2*runs {
		first := rng.IntN(2)
		list = append(list, first, 1-first, 1-first, first)
	}
	return list[:2*runs]
}

// Run runs both programs and calls tell after each finished run. An error names the program that
// failed. Runs that finished before stay in Done.
func (t *Turns) Run(ctx context.Context, tell func(Turn)) error {
	list := order(t.Runs, t.Seed)
	for i, side := range list {
		x, err := t.take(ctx, side)
		if err != nil {
			return err
		}
		x.Run, x.All = i+1, len(list)
		tell(x)
	}
	return nil
}

// take makes a run of one of the programs.
func (t *Turns) take(ctx context.Context, side int) (Turn, error) {
	start, label := time.Now(), t.Programs[side].Label
	folder, records, err := t.once(ctx, side)
	if err != nil {
		return Turn{}, fmt.Errorf("%s failed in run %d: %w", label, len(t.Done[side])+1, err)
	}
	t.Done[side] = append(t.Done[side], folder)
	return Turn{Label: label, Records: records, Took: time.Since(start)}, nil
}

// Sides spells the finished runs of each program as label=RUN,RUN.
func (t *Turns) Sides() []string {
	var list []string
	for i, p := range t.Programs {
		list = append(list, p.Label+"="+strings.Join(t.Done[i], ","))
	}
	return list
}

// Read reads the finished runs of one of the programs.
func (t *Turns) Read(side int) ([]record.Set, error) {
	var runs []string
	for _, dir := range t.Done[side] {
		runs = append(runs, t.Programs[side].Label+"="+dir)
	}
	sets, _, err := record.ReadAll(runs)
	return sets, err
}

// once runs the command of one side and returns the folder of its run.
func (t *Turns) once(ctx context.Context, side int) (folder string, records int, err error) {
	p := t.Programs[side]
	out := filepath.Join(t.Dir, p.Label)
	args := append(slices.Clone(t.Command), "--out", out, "--label", p.Label, "--quiet")
	cmd := exec.CommandContext(ctx, p.Path, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &limited{&said, 1 << 16}
	cmd.Cancel = func() error { // an interrupt lets a sweep end properly
		if cmd.Process.Signal(os.Interrupt) != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
	cmd.WaitDelay = 10 * time.Second
	start := t.Start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	if err = start(cmd); err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == t.Failures {
		err = nil // points that failed are part of the comparison
	}
	if err != nil {
		return "", 0, &Failure{reasonOf(said.String(), err), exit}
	}
	m, recs, _, err := record.Read(out)
	if err != nil {
		return "", 0, fmt.Errorf("its run cannot be read: %w", err)
	}
	return filepath.Join(out, m.Run), len(recs), nil
}

// reasonOf is the error that a program printed when it failed, or else how it ended.
func reasonOf(said string, err error) error {
	for line := range strings.Lines(said) {
		if why, ok := strings.CutPrefix(strings.TrimSpace(line), "rnnbench: "); ok {
			return errors.New(why)
		}
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(said), "\n"); line != "" {
		return fmt.Errorf("%w: %s", err, line)
	}
	return err
}

// A limited buffer keeps the first bytes and drops the rest.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	l.to.Write(b[:n])
	return len(b), nil
}
