// Package cluster hands the shards of a plan to a scheduler. It writes job scripts and manifests,
// records what was submitted, and reports the progress of the shards. It knows runs only by their
// folders, and knows nothing of plans, techniques or devices.
package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"rnnbench/internal/input"
	"rnnbench/record/files"
)

// Schema names the version of Submission.
const Schema = "rnnbench.submission/1"

// File is the file in a submission's folder that records the submission.
const File = "submission.json"

// A Submission is a command whose shards a scheduler runs. Its folder holds the shards.
type Submission struct {
	Schema    string    `json:"schema"`
	Name      string    `json:"name"`
	Scheduler string    `json:"scheduler"` // one of Schedulers
	Created   time.Time `json:"created"`

	Version string   `json:"version"`  // of rnnbench; jobs must have the same
	Device  string   `json:"device"`   // key of the device that nodes must have; "": that of the first shard
	Program string   `json:"program"`  // path of the program for jobs
	Dir     string   `json:"dir"`      // folder of the shards, as jobs see it
	Work    string   `json:"work_dir"` // folder in which the command runs; "": the scheduler's choice
	Command []string `json:"command"`  // without the program
	Groups  []Group  `json:"groups"`

	Slurm      *Slurm      `json:"slurm,omitempty"`
	Kubernetes *Kubernetes `json:"kubernetes,omitempty"`

	Rounds []Round `json:"rounds"` // the submission, and then each retry
}

// A Group is the shards that run on one kind of device. Every group measures the whole plan.
type Group struct {
	Name    string `json:"name"` // "": the only group
	Shards  int    `json:"shards"`
	Request string `json:"request"` // Slurm's --gres, or a node selector of Kubernetes; "": none
}

// A Round is what was submitted at one time.
type Round struct {
	Time  time.Time `json:"time"`
	Jobs  []Job     `json:"jobs"`
	Merge string    `json:"merge"` // job that merges the shards; "": not submitted
}

// A Job is an array of jobs of one group.
type Job struct {
	Group  string `json:"group"`
	ID     string `json:"id"`     // the scheduler's name of it; "": not submitted
	Shards []int  `json:"shards"` // in the order of the array
}

// A Text is a file for a scheduler.
type Text struct{ Name, Content string }

// A Runner runs a command of a scheduler and returns what it printed.
type Runner func(name string, args ...string) (string, error)

// A Scheduler starts jobs and reports their states.
type Scheduler interface {
	// Command is the program through which jobs are submitted.
	Command() string

	// Texts returns the files of round n of s, counted from 0: scripts or a manifest.
	Texts(s *Submission, n int) ([]Text, error)

	// Start submits the jobs of round n, whose texts lie in dir, and fills in their IDs. After an
	// error, the jobs that were submitted before it have IDs.
	Start(run Runner, s *Submission, n int, dir string) error

	// States returns the states of the jobs, by shard. It fails if the scheduler cannot be asked.
	States(run Runner, s *Submission) (map[Place]State, error)
}

// Schedulers lists the names of the schedulers.
func Schedulers() []string { return []string{"slurm", "kubernetes"} }

// Of is the scheduler of s.
func (s *Submission) Of() (Scheduler, error) {
	switch {
	case s.Scheduler == "slurm" && s.Slurm != nil:
		return s.Slurm, nil
	case s.Scheduler == "kubernetes" && s.Kubernetes != nil:
		return s.Kubernetes, nil
	}
	return nil, fmt.Errorf("unknown scheduler %q: choose one of %s", s.Scheduler, strings.Join(Schedulers(), ", "))
}

// name matches what schedulers and file systems accept as a name.
var name = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// Lengths of names, so that those of jobs are at most Kubernetes' 63 characters.
const (
	mostName  = 36
	mostGroup = 12
)

// reservedNames lists names that groups cannot have: their folder or script would be another's.
var reservedNames = []string{logs, mergeWord, "bin", "retry"}

// mostShards bounds the number of shards. Schedulers accept fewer.
const mostShards = 100_000

// Check reports the first thing that no scheduler accepts.
func (s *Submission) Check() error {
	if !name.MatchString(s.Name) || len(s.Name) > mostName {
		return fmt.Errorf("--name: %q must be at most %d lower-case letters, digits and inner hyphens", s.Name, mostName)
	}
	if len(s.Groups) == 0 {
		return errors.New("--shards or --group must say how many shards there are")
	}
	for i, g := range s.Groups {
		switch {
		case g.Name == "" && len(s.Groups) > 1, g.Name != "" && (!name.MatchString(g.Name) || len(g.Name) > mostGroup):
			return fmt.Errorf("--group: the name %q must be at most %d lower-case letters, digits and inner hyphens", g.Name, mostGroup)
		case slices.Contains(reservedNames, g.Name):
			return fmt.Errorf("--group: the name %s is taken: choose another", g.Name)
		case g.Shards < 1 || g.Shards > mostShards:
			return fmt.Errorf("the number of shards is %d: it must be from 1 to %d", g.Shards, mostShards)
		case slices.ContainsFunc(s.Groups[:i], func(o Group) bool { return o.Name == g.Name }):
			return fmt.Errorf("--group: %s is named twice: omit one", g.Name)
		}
	}
	return nil
}

// ParseGroup reads a group such as h100=8:gpu:h100:1.
func ParseGroup(text string) (Group, error) {
	name, rest, ok := strings.Cut(text, "=")
	count, request, _ := strings.Cut(rest, ":")
	g := Group{Name: name, Request: request}
	if _, err := fmt.Sscanf(count+"\n", "%d\n", &g.Shards); !ok || err != nil || name == "" {
		return g, fmt.Errorf("%q is not a group: write NAME=SHARDS:REQUEST, such as h100=8:gpu:h100:1", text)
	}
	return g, nil
}

// All returns the jobs of every shard.
func (s *Submission) All() []Job {
	var jobs []Job
	for _, g := range s.Groups {
		j := Job{Group: g.Name}
		for i := range g.Shards {
			j.Shards = append(j.Shards, i+1)
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// group is the group of that name.
func (s *Submission) group(name string) Group {
	i := slices.IndexFunc(s.Groups, func(g Group) bool { return g.Name == name })
	if i < 0 {
		return Group{Name: name}
	}
	return s.Groups[i]
}

// jobName names the job of a group in round n. word, if any, marks the job that merges.
func (s *Submission) jobName(group string, n int, word string) string {
	parts := []string{s.Name}
	if group != "" {
		parts = append(parts, group)
	}
	if n > 0 {
		parts = append(parts, fmt.Sprintf("r%d", n))
	}
	if word != "" {
		parts = append(parts, word)
	}
	return strings.Join(parts, "-")
}

// measure returns the arguments of a group's jobs, without the shard.
func (s *Submission) measure(group, dir string) []string {
	args := append(slices.Clone(s.Command), "--out", dir, "--submitted-version", s.Version)
	if s.Device != "" {
		args = append(args, "--submitted-device", s.Device)
	}
	return args
}

// Save writes the submission to its folder dir.
func (s *Submission) Save(dir string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(dir, File), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// Create creates the folder of a new submission.
func (s *Submission) Create(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, File)); err == nil {
		return fmt.Errorf("%s holds a submission already: use --name for another one, or rnnbench submit status %s --retry to go on with it", dir, dir)
	}
	for _, d := range []string{dir, filepath.Join(dir, logs)} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			return fmt.Errorf("cannot make the folder %s: %w", d, err)
		}
	}
	return s.Save(dir)
}

// logs is the folder, within a submission's, for what jobs print.
const logs = "logs"

// maxFile bounds the file of a submission, in bytes.
const maxFile = 16 << 20

// Read reads the submission in dir.
func Read(dir string) (*Submission, error) {
	path := filepath.Join(dir, File)
	text, err := input.ReadTextFile(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not the folder of a submission: it has no %s", dir, File)
	}
	if err != nil {
		return nil, err
	}
	s := &Submission{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	if s.Schema != Schema {
		return nil, fmt.Errorf("%s has the schema %q, but this rnnbench reads %q", path, s.Schema, Schema)
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	if _, err := s.Of(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Submit writes the texts of the last round to dir, starts its jobs, and records them there. It
// records them even if the scheduler refuses some.
func (s *Submission) Submit(run Runner, dir string) error {
	by, err := s.Of()
	if err != nil {
		return err
	}
	n := len(s.Rounds) - 1
	texts, err := by.Texts(s, n)
	if err != nil {
		return err
	}
	for _, t := range texts {
		put := func(w io.Writer) error { _, err := io.WriteString(w, t.Content); return err }
		if err := files.Write(filepath.Join(dir, t.Name), put); err != nil {
			return err
		}
	}
	err = by.Start(run, s, n, dir)
	return errors.Join(err, s.Save(dir))
}
