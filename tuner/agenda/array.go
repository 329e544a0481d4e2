package agenda

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rnnbench/record"
)

// An Array is a job of a scheduler's array of jobs, as the scheduler describes it. The description is
// of this submission. If some jobs of an array are submitted again, it is not of the first one.
type Array struct {
	record.Numbers
	Task  int // number of this job
	Last  int // largest number in the array; with Count 0, unknown
	Count int // jobs in the array; 0: unknown
}

// A scheduler names the variables that it sets for a job of an array. Where it sets none, the name is
// empty.
type scheduler struct {
	task, first, last, step, count string
	none                           string // value of task outside an array
	base                           int    // first number, where no variable says it
}

// schedulers lists what sets which variables. Kubernetes sets no count, but the manifest of the job can.
var schedulers = []scheduler{
	{task: "SLURM_ARRAY_TASK_ID", first: "SLURM_ARRAY_TASK_MIN", last: "SLURM_ARRAY_TASK_MAX", step: "SLURM_ARRAY_TASK_STEP", count: "SLURM_ARRAY_TASK_COUNT", base: 1},
	{task: "JOB_COMPLETION_INDEX", count: "JOB_COMPLETIONS"},
	{task: "SGE_TASK_ID", first: "SGE_TASK_FIRST", last: "SGE_TASK_LAST", step: "SGE_TASK_STEPSIZE", none: "undefined", base: 1},
	{task: "PBS_ARRAY_INDEX"}, // PBS and LSF do not say where the array begins or how many jobs it has
	{task: "PBS_ARRAYID"},
	{task: "LSB_JOBINDEX", none: "0"},
}

// FromScheduler reads the variables that a scheduler sets for a job of an array; nil: this is none.
func FromScheduler(env func(string) string) (*Array, error) {
	i := slices.IndexFunc(schedulers, func(s scheduler) bool { return env(s.task) != "" && env(s.task) != s.none })
	if i < 0 {
		return nil, nil
	}
	s := schedulers[i]
	a := &Array{Numbers: record.Numbers{From: s.task, First: s.base, Step: 1}}
	var err error
	read := func(name string, to *int) (there bool) {
		text := ""
		if name != "" {
			text = env(name)
		}
		if text == "" {
			return false
		}
		v, bad := strconv.Atoi(text)
		if bad != nil && err == nil {
			err = fmt.Errorf("%s is %q, which is not a number", name, text)
		}
		*to = v
		return true
	}
	read(s.task, &a.Task)
	read(s.first, &a.First)
	read(s.step, &a.Step)
	counted, ends := read(s.count, &a.Count), read(s.last, &a.Last)
	switch {
	case err != nil:
	case a.Step < 1:
		err = fmt.Errorf("its numbers are %d apart", a.Step)
	case s.count != "" && !counted:
		err = fmt.Errorf("%s is not set", s.count)
	case s.count == "" && s.last != "" && !ends:
		err = fmt.Errorf("%s is not set", s.last)
	case !counted && ends:
		a.Count = (a.Last-a.First)/a.Step + 1
	case !ends:
		a.Last = a.First + (a.Count-1)*a.Step
	}
	if err != nil {
		return nil, fmt.Errorf("the shard cannot be read from %s: %w", s.task, err)
	}
	return a, nil
}

// Shard is the shard of the job, if its array measures the whole agenda: job First is shard 1.
func (a *Array) Shard() (record.Shard, error) {
	why := ""
	switch i := a.Place(a.Task); {
	case a.Count == 0:
		why = fmt.Sprintf("it says that this is job %d of an array, but not of how many, so each would measure the whole plan", a.Task)
	case (a.Last-a.First)/a.Step+1 != a.Count:
		why = fmt.Sprintf("the array has %d jobs with numbers from %d to %d, so it has gaps", a.Count, a.First, a.Last)
	case i == 0:
		why = fmt.Sprintf("%d is no number of an array from %d to %d by %d", a.Task, a.First, a.Last, a.Step)
	default:
		s, err := shard(i, a.Count, fmt.Sprintf("%s %d of %d from %d by %d", a.From, a.Task, a.Count, a.First, a.Step))
		if err == nil {
			s.Numbers = &a.Numbers
			return s, nil
		}
		why = err.Error()
	}
	return record.Shard{}, fmt.Errorf("the shard cannot be read from %s: %s", a.From, why)
}

// Among is the shard of the job, where had lists the shards of the same agenda that were begun before. If
// the array does not divide the agenda as they do, it has some of their jobs again. These are known by
// their numbers.
func (a *Array) Among(had []record.Shard) (record.Shard, error) {
	whole, err := a.Shard()
	if err == nil && (len(had) == 0 || slices.ContainsFunc(had, func(s record.Shard) bool { return s.Count == whole.Count })) {
		return whole, nil
	}
	if len(had) == 0 {
		return whole, err
	}
	var found []record.Shard
	for _, s := range had {
		if s.Numbers == nil || s.Numbers.From != a.From {
			continue
		}
		i := s.Numbers.Place(a.Task)
		again := record.Shard{Index: i, Count: s.Count, Numbers: s.Numbers}
		if i >= 1 && i <= s.Count && !slices.ContainsFunc(found, func(o record.Shard) bool { return o.Index == i && o.Count == s.Count }) {
			found = append(found, again)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	var names []string
	for _, s := range had[:min(len(had), 3)] {
		names = append(names, s.String())
	}
	if len(had) > len(names) {
		names = append(names, "…")
	}
	jobs := "an unknown number of jobs"
	if a.Count > 0 {
		jobs = fmt.Sprintf("%d", a.Count)
	}
	return whole, fmt.Errorf("the shard cannot be read from %s: it is job %d in an array of %s, but the plan was divided before, into shards such as %s",
		a.From, a.Task, jobs, strings.Join(names, ", "))
}
