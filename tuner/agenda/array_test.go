package agenda

import (
	"strings"
	"testing"

	"rnnbench/record"
)

// Environments of jobs of arrays, as schedulers set them.
type environ map[string]string

func (e environ) get(name string) string { return e[name] }

func slurm(id, count, first, last, step string) environ {
	return environ{"SLURM_ARRAY_TASK_ID": id, "SLURM_ARRAY_TASK_COUNT": count, "SLURM_ARRAY_TASK_MIN": first, "SLURM_ARRAY_TASK_MAX": last, "SLURM_ARRAY_TASK_STEP": step}
}

func gridEngine(id, first, last, step string) environ {
	return environ{"SGE_TASK_ID": id, "SGE_TASK_FIRST": first, "SGE_TASK_LAST": last, "SGE_TASK_STEPSIZE": step}
}

// TestFromScheduler reads shards of an agenda that was not divided before from the variables of schedulers.
func TestFromScheduler(t *testing.T) {
	for _, c := range []struct {
		env  environ
		want string // shard, or a part of the error; "": no array
	}{
		{nil, ""},
		{slurm("1", "16", "1", "16", "1"), "1/16"},
		{slurm("0", "16", "0", "15", "1"), "1/16"},
		{slurm("15", "16", "0", "15", "1"), "16/16"},
		{slurm("7", "3", "3", "7", "2"), "3/3"},
		{slurm("3", "4", "", "", ""), "3/4"},
		{slurm("7", "3", "1", "", "1"), "7 of 3 from 1 by 1: the shard must be from 1 to 3"},
		{slurm("4", "3", "1", "", "2"), "4 is no number of an array from 1 to 5 by 2"},
		{slurm("4", "3", "1", "6", "1"), "the array has 3 jobs with numbers from 1 to 6, so it has gaps"},
		{slurm("3", "3", "1", "4", "1"), "so it has gaps"}, // of 1,3,4: the third number is not shard 3
		{slurm("4", "", "1", "", "2"), "SLURM_ARRAY_TASK_COUNT is not set"},
		{slurm("x", "3", "1", "", "2"), `SLURM_ARRAY_TASK_ID is "x"`},
		{slurm("4", "3", "1", "", "0"), "its numbers are 0 apart"},
		{environ{"JOB_COMPLETION_INDEX": "0", "JOB_COMPLETIONS": "4"}, "1/4"},
		{environ{"JOB_COMPLETION_INDEX": "4", "JOB_COMPLETIONS": "4"}, "must be from 1 to 4"},
		{environ{"JOB_COMPLETION_INDEX": "0"}, "JOB_COMPLETIONS is not set"},
		{gridEngine("7", "3", "9", "2"), "3/4"},
		{gridEngine("undefined", "undefined", "undefined", "undefined"), ""},
		{gridEngine("2", "1", "", "1"), "SGE_TASK_LAST is not set"},
		{environ{"PBS_ARRAY_INDEX": "2", "PBS_ARRAY_ID": "12[]"}, "PBS_ARRAY_INDEX: it says that this is job 2 of an array, but not of how many, so each would measure the whole plan"},
		{environ{"PBS_ARRAYID": "2"}, "PBS_ARRAYID: it says that this is job 2"},
		{environ{"LSB_JOBINDEX": "5", "LSB_JOBINDEX_END": "8"}, "LSB_JOBINDEX: it says that this is job 5"},
		{environ{"LSB_JOBINDEX": "0"}, ""},
	} {
		got := ""
		a, err := FromScheduler(c.env.get)
		if a != nil && err == nil {
			var s record.Shard
			s, err = a.Among(nil)
			got = s.String()
		}
		if err == nil && got != c.want || err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %s, %v; want %s", c.env, got, err, c.want)
		}
	}
}

// TestSomeJobsAgain: jobs of an array that are submitted again measure the same shards as before,
// whatever the scheduler says of the new array.
func TestSomeJobsAgain(t *testing.T) {
	begun := func(first environ) []record.Shard {
		a, err := FromScheduler(first.get)
		if err != nil {
			t.Fatal(err)
		}
		s, err := a.Among(nil)
		if err != nil {
			t.Fatal(err)
		}
		return []record.Shard{s}
	}
	named := []record.Shard{{Index: 2, Count: 4}, {Index: 3, Count: 4}}
	for _, c := range []struct {
		had  []record.Shard
		env  environ
		want string
	}{
		{begun(slurm("1", "16", "1", "16", "1")), slurm("3", "1", "3", "3", "1"), "3/16"},
		{begun(slurm("2", "16", "0", "15", "1")), slurm("3", "1", "3", "3", "1"), "4/16"},
		{begun(slurm("7", "4", "3", "9", "2")), slurm("9", "2", "5", "9", "1"), "4/4"},
		{begun(slurm("1", "16", "1", "16", "1")), slurm("9", "2", "2", "9", "1"), "9/16"},     // a gap
		{begun(slurm("1", "16", "1", "16", "1")), slurm("9", "16", "1", "16", "1"), "9/16"},   // all again
		{begun(slurm("2", "16", "0", "15", "1")), slurm("16", "16", "1", "16", "1"), "16/16"}, // all, by other numbers
		{begun(slurm("1", "16", "1", "16", "1")), slurm("17", "1", "17", "17", "1"), "it is job 17 in an array of 1, but the plan was divided before, into shards such as 1/16"},
		{begun(slurm("7", "4", "3", "9", "2")), slurm("4", "1", "4", "4", "1"), "job 4 in an array of 1"},
		{begun(slurm("1", "1", "1", "1", "1")), slurm("2", "16", "1", "16", "1"), "job 2 in an array of 16"},
		{begun(gridEngine("1", "1", "8", "1")), gridEngine("3", "3", "3", "1"), "3/8"},
		{begun(gridEngine("1", "1", "8", "1")), slurm("3", "1", "3", "3", "1"), "into shards such as 1/8"},
		{named, slurm("3", "1", "3", "3", "1"), "into shards such as 2/4, 3/4"},
		{named, slurm("3", "4", "1", "4", "1"), "3/4"},
		{named, environ{"PBS_ARRAY_INDEX": "2"}, "it is job 2 in an array of an unknown number of jobs"},
		{append(begun(slurm("1", "16", "1", "16", "1")), begun(slurm("1", "8", "1", "8", "1"))...), slurm("3", "1", "3", "3", "1"), "such as 1/16, 1/8"},
	} {
		a, err := FromScheduler(c.env.get)
		if err != nil {
			t.Fatal(err)
		}
		s, err := a.Among(c.had)
		if got := s.String(); err == nil && got != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v after %v: %s, %v; want %s", c.env, c.had, got, err, c.want)
		}
	}
}

// TestOneOf takes the shard at the job's place in a list.
func TestOneOf(t *testing.T) {
	job := func(index, count string) func(string) string {
		return func(name string) string {
			return map[string]string{"JOB_COMPLETION_INDEX": index, "JOB_COMPLETIONS": count}[name]
		}
	}
	if s, err := OneOf("3,7,9/16", job("1", "3")); err != nil || s.Index != 7 || s.Count != 16 {
		t.Errorf("%v, %v", s, err)
	}
	for _, c := range []struct{ list, index, count, want string }{
		{"3,7/16", "", "", "this is not a job of an array: name one shard, such as 3/16"},
		{"3,7/16", "0", "3", "lists 2 shards, but the array has 3 jobs"},
		{"3,7/5", "1", "2", "the shard must be from 1 to 5"},
		{"3,x/5", "1", "2", "is not a shard"},
		{"3,7", "1", "2", "is not a shard"},
	} {
		if s, err := OneOf(c.list, job(c.index, c.count)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.list, s, err, c.want)
		}
	}
}
