package cluster

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"rnnbench/record"
)

// Slurm holds the options of jobs on Slurm.
type Slurm struct {
	Partition  string   `json:"partition"`
	Time       string   `json:"time"` // as sbatch takes it
	Account    string   `json:"account"`
	Constraint string   `json:"constraint"`
	Options    []string `json:"options"` // of sbatch, as the user wrote them
	Shared     bool     `json:"shared"`  // other jobs may use the node at the same time
}

//go:embed shards.sh.tmpl
var shardsScript string

//go:embed merge.sh.tmpl
var mergeScript string

var scripts = template.Must(template.New("").Funcs(template.FuncMap{"quote": quote, "words": quoteAll}).Parse(
	`{{define "shards"}}` + shardsScript + `{{end}}{{define "merge"}}` + mergeScript + `{{end}}`))

// Command implements Scheduler.
func (*Slurm) Command() string { return "sbatch" }

// script is the data of Slurm's templates.
type script struct {
	*Submission
	Options  []string // of sbatch, a line each
	Args     []string
	Of       int // shards of the group
	Folders  []string
	Describe string
}

// Texts implements Scheduler.
func (l *Slurm) Texts(s *Submission, n int) ([]Text, error) {
	var list []Text
	add := func(name, template string, x script) error {
		var b strings.Builder
		x.Submission = s
		if err := scripts.ExecuteTemplate(&b, template, x); err != nil {
			return err
		}
		list = append(list, Text{name, b.String()})
		return nil
	}
	var folders []string
	for _, j := range s.Rounds[n].Jobs {
		g := s.group(j.Group)
		options, err := l.options(s, g, j)
		if err != nil {
			return nil, err
		}
		folder := path.Join(s.Dir, g.Name)
		folders = append(folders, folder)
		err = add(textName(g.Name, n), "shards", script{Options: options, Args: s.measure(g.Name, folder), Of: g.Shards, Describe: describe(s, g)})
		if err != nil {
			return nil, err
		}
	}
	options, err := l.mergeOptions(s, n)
	if err != nil {
		return nil, err
	}
	return list, add(textName(mergeWord, n), "merge", script{Options: options, Folders: folders})
}

// mergeWord names the job that merges.
const mergeWord = "merge"

// textName is the name of a script of round n.
func textName(word string, n int) string {
	parts := []string{"shards"}
	switch word {
	case "":
	case mergeWord:
		parts[0] = mergeWord
	default:
		parts = append(parts, word)
	}
	if n > 0 {
		parts = append(parts, "retry", strconv.Itoa(n))
	}
	return strings.Join(parts, "-") + ".sh"
}

// describe returns a comment on what a script is for.
func describe(s *Submission, g Group) string {
	text := fmt.Sprintf("One shard of %d of: rnnbench %s", g.Shards, quoteAll(s.Command))
	return strings.ReplaceAll(text, "\n", " ")
}

// options are sbatch's options for the array of a group.
func (l *Slurm) options(s *Submission, g Group, j Job) ([]string, error) {
	list := []string{
		"--job-name=" + s.jobName(g.Name, 0, ""),
		"--array=" + strings.ReplaceAll(record.Ranges(j.Shards), " ", ""),
		"--output=" + escape(path.Join(s.Dir, logs, s.jobName(g.Name, 0, "")+"-")) + "%a.log",
		"--open-mode=append", // a requeued job keeps what it said before
		"--requeue",
		fmt.Sprintf("--signal=B:TERM@%d", warningSeconds),
		"--chdir=" + s.Work,
	}
	if g.Request != "" {
		list = append(list, "--gres="+g.Request)
	} else if !l.Shared {
		list = append(list, "--exclusive") // other jobs would disturb the measurement
	}
	for _, o := range [][2]string{{"partition", l.Partition}, {"time", l.Time}, {"account", l.Account}, {"constraint", l.Constraint}} {
		if o[1] != "" {
			list = append(list, "--"+o[0]+"="+o[1])
		}
	}
	return lines(append(list, l.Options...))
}

// warningSeconds is how many seconds before its time limit a job gets SIGTERM. The job ends after
// its present step.
const warningSeconds = 60

// sharedOptions lists options of sbatch that say who pays and where. The merge needs these too, but
// asks for resources of its own.
var sharedOptions = []string{"account", "A", "partition", "p", "qos", "q", "reservation", "clusters", "M", "wckey", "mail-type", "mail-user", "comment"}

func (l *Slurm) mergeOptions(s *Submission, n int) ([]string, error) {
	list := []string{
		"--job-name=" + s.jobName("", 0, mergeWord),
		"--output=" + escape(path.Join(s.Dir, logs, mergeWord)) + ".log",
		"--open-mode=append",
		"--chdir=" + s.Work,
	}
	for _, o := range [][2]string{{"partition", l.Partition}, {"account", l.Account}} {
		if o[1] != "" {
			list = append(list, "--"+o[0]+"="+o[1])
		}
	}
	for _, o := range l.Options {
		if named(o, sharedOptions) != "" {
			list = append(list, o)
		}
	}
	return lines(list)
}

// alone lists the letters of sbatch's options that take no value, so that another letter may follow.
const alone = "hHIkOQsvVW"

// optionNames are the names of the options that sbatch reads in a word: qos of --qos=high, a of -a1-9, and
// H and a of -Ha1-9.
func optionNames(o string) []string {
	if long, ok := strings.CutPrefix(o, "--"); ok {
		name, _, _ := strings.Cut(long, "=")
		name, _, _ = strings.Cut(name, " ")
		return []string{name}
	}
	var names []string
	for _, letter := range strings.TrimPrefix(o, "-") {
		names = append(names, string(letter))
		if !strings.ContainsRune(alone, letter) {
			break
		}
	}
	return names
}

// named reports which of sbatch's options in list the word o sets; "": none. Sbatch takes any beginning of a
// long name.
func named(o string, list []string) string {
	for _, name := range optionNames(o) {
		for _, known := range list {
			if name == known || len(name) > 1 && len(known) > 1 && strings.HasPrefix(known, name) {
				return known
			}
		}
	}
	return ""
}

// lines returns options as they stand behind #SBATCH in a script.
func lines(options []string) ([]string, error) {
	list := make([]string, len(options))
	for i, o := range options {
		if strings.ContainsAny(o, "\n\r\"\\") {
			return nil, fmt.Errorf("%q cannot stand in a job script: omit quotes, backslashes and line breaks", o)
		}
		if name, value, ok := strings.Cut(o, "="); ok && strings.ContainsAny(value, " \t#'") {
			o = name + `="` + value + `"`
		}
		list[i] = o
	}
	return list, nil
}

// escape makes sbatch take a path literally.
func escape(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// ownOptions lists options of sbatch that submit sets, or that would keep it from submitting the shards.
var ownOptions = []string{"array", "a", "output", "o", "wrap", "dependency", "d", "parsable", "test-only", "chdir", "workdir", "D"}

// CheckOption checks an option of sbatch that the user wrote.
func CheckOption(o string) error {
	if !strings.HasPrefix(o, "-") || len(strings.Trim(o, "-")) == 0 {
		return fmt.Errorf("--sbatch: %q is not an option of sbatch: write one such as --sbatch=--qos=high", o)
	}
	if own := named(o, ownOptions); own != "" {
		return fmt.Errorf("--sbatch: rnnbench sets %s itself: omit %s", strings.Repeat("-", min(len(own), 2))+own, o)
	}
	_, err := lines([]string{o})
	return err
}

// Start implements Scheduler.
func (*Slurm) Start(run Runner, s *Submission, n int, dir string) error {
	r := &s.Rounds[n]
	var ids []string
	submit := func(args ...string) (string, error) {
		out, err := run("sbatch", append([]string{"--parsable"}, args...)...)
		if err != nil {
			return "", err
		}
		id, _, _ := strings.Cut(strings.TrimSpace(out), ";") // a cluster's name may follow
		if _, err := strconv.Atoi(id); err != nil {
			return "", fmt.Errorf("sbatch printed no job number, but %q", strings.TrimSpace(out))
		}
		return id, nil
	}
	for i := range r.Jobs {
		id, err := submit(filepath.Join(dir, textName(r.Jobs[i].Group, n)))
		if err != nil {
			return err
		}
		r.Jobs[i].ID = id
		ids = append(ids, id)
	}
	// The merge runs whatever becomes of the shards: it names those that are missing.
	id, err := submit("--dependency=afterany:"+strings.Join(ids, ":"), filepath.Join(dir, textName(mergeWord, n)))
	r.Merge = id
	return err
}

// States implements Scheduler. squeue knows jobs until some minutes after their end. sacct knows
// them later too, where there is accounting.
func (*Slurm) States(run Runner, s *Submission) (map[Place]State, error) {
	all := map[Place]State{}
	answered, failed := false, error(nil)
	for _, r := range s.Rounds {
		for _, j := range r.Jobs {
			if j.ID == "" {
				continue
			}
			note := func(out string) {
				for line := range strings.Lines(out) {
					if i, state, ok := slurmState(line, j.ID); ok && slices.Contains(j.Shards, i) {
						all[Place{j.Group, i}] = state
					}
				}
			}
			out, err := run("sacct", "--noheader", "--parsable2", "--allocations", "--array", "--jobs="+j.ID, "--format=JobID,State,NodeList,Reason")
			if err == nil {
				note(out)
			}
			sacct := err == nil
			out, err = run("squeue", "--noheader", "--array", "--states=all", "--jobs="+j.ID, "--format=%F_%K|%T|%N|%r")
			if err == nil {
				note(out)
			}
			// To squeue, a number that it has forgotten is an error.
			forgotten := err != nil && strings.Contains(err.Error(), "Invalid job id")
			if answered = answered || sacct || err == nil || forgotten; !answered {
				failed = err
			}
		}
	}
	if !answered && failed != nil {
		return nil, failed
	}
	return all, nil
}

// slurmState reads a line of squeue or sacct: 12_3|RUNNING|node1|None.
func slurmState(line, id string) (shard int, s State, ok bool) {
	f := strings.Split(strings.TrimSpace(line), "|")
	if len(f) < 3 {
		return 0, s, false
	}
	index, ok := strings.CutPrefix(f[0], id+"_")
	i, err := strconv.Atoi(index)
	if !ok || err != nil {
		return 0, s, false
	}
	word, _, _ := strings.Cut(strings.TrimRight(f[1], "+"), " ") // CANCELLED by 1000
	s = State{Job: f[0], Node: f[2]}
	switch word {
	case "PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SUSPENDED", "RESV_DEL_HOLD", "SPECIAL_EXIT":
		s.Phase = Queued
		if len(f) > 3 && f[3] != "None" {
			s.Why = f[3]
		}
	case "RUNNING", "COMPLETING", "CONFIGURING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED":
		s.Phase = Running
	case "COMPLETED":
		s.Phase = Done
	default: // FAILED, TIMEOUT, NODE_FAIL, OUT_OF_MEMORY, CANCELLED, PREEMPTED, BOOT_FAIL, DEADLINE
		s.Phase, s.Why = Failed, strings.ToLower(strings.ReplaceAll(word, "_", " "))
	}
	return i, s, true
}

var slurmTime = regexp.MustCompile(`^(\d+-)?\d+(:\d+){0,2}$`)

// SlurmTime returns a time limit in a form of sbatch. It translates limits such as 2h30m.
func SlurmTime(text string) (string, error) {
	if text == "" || slurmTime.MatchString(text) {
		return text, nil
	}
	d, err := limit(text)
	if err != nil {
		return "", err
	}
	m := int((d + time.Minute - 1) / time.Minute)
	return fmt.Sprintf("%02d:%02d:00", m/60, m%60), nil
}

// limit reads a time limit.
func limit(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, errors.New("--time: " + strconv.Quote(text) + " is not a time limit: write one such as 2h or 90m")
	}
	return d, nil
}

// plain matches a word that a shell takes literally.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote writes a word for a shell.
func quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func quoteAll(list []string) string {
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}
