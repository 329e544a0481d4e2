package plan

import (
	"fmt"
	"strconv"
	"strings"

	"rnnbench/results"
)

// mostShards is the largest number of shards. Schedulers allow fewer.
const mostShards = 100_000

// ParseShard reads a shard such as 3/16.
func ParseShard(s string) (results.Shard, error) {
	first, second, ok := strings.Cut(s, "/")
	i, bad := strconv.Atoi(first)
	n, worse := strconv.Atoi(second)
	if !ok || bad != nil || worse != nil {
		return results.Shard{}, fmt.Errorf("%q is not a shard: write one such as 3/16, or off", s)
	}
	return shard(i, n, s)
}

// shard makes a shard of checked numbers; what names the source in errors.
func shard(i, n int, what string) (results.Shard, error) {
	switch {
	case n < 1 || n > mostShards:
		return results.Shard{}, fmt.Errorf("%s: the number of shards must be from 1 to %d", what, mostShards)
	case i < 1 || i > n:
		return results.Shard{}, fmt.Errorf("%s: the shard must be from 1 to %d", what, n)
	}
	return results.Shard{Index: i, Count: n}, nil
}

// OneOf reads a list of shards such as 3,7,9/16 and returns the one at this job's place in its array.
// Retries use it: their array is shorter than the plan's. env returns an environment variable.
func OneOf(s string, env func(string) string) (results.Shard, error) {
	list, count, _ := strings.Cut(s, "/")
	all := strings.Split(list, ",")
	place, from, err := FromScheduler(env)
	switch {
	case err != nil:
		return results.Shard{}, err
	case from == "":
		return results.Shard{}, fmt.Errorf("%s lists shards, but this is not a job of an array: name one shard, such as %s/%s", s, all[0], count)
	case place.Count != len(all):
		return results.Shard{}, fmt.Errorf("%s lists %d shards, but the array has %d jobs", s, len(all), place.Count)
	}
	return ParseShard(all[place.Index-1] + "/" + count)
}

// Variables of Slurm's job arrays and of Kubernetes' Indexed Jobs.
const (
	slurmTask       = "SLURM_ARRAY_TASK_ID"
	slurmCount      = "SLURM_ARRAY_TASK_COUNT"
	slurmFirst      = "SLURM_ARRAY_TASK_MIN"
	slurmStep       = "SLURM_ARRAY_TASK_STEP"
	kubernetesTask  = "JOB_COMPLETION_INDEX"
	kubernetesCount = "JOB_COMPLETIONS" // the job's manifest has to set it
)

// FromScheduler reads the shard from the variables that a scheduler sets for a job of an array. from
// names the variable that it found; it is "" outside such a job.
func FromScheduler(env func(string) string) (s results.Shard, from string, err error) {
	number := func(name string, usual int) int {
		text := env(name)
		if text == "" && usual >= 0 {
			return usual
		}
		v, bad := strconv.Atoi(text)
		if bad != nil && err == nil {
			err = fmt.Errorf("%s is %q, which is not a number", name, text)
			if text == "" {
				err = fmt.Errorf("%s is not set", name)
			}
		}
		return v
	}
	const needed = -1
	switch {
	case env(slurmTask) != "":
		from = slurmTask
		id, n, first, step := number(slurmTask, needed), number(slurmCount, needed), number(slurmFirst, 1), number(slurmStep, 1)
		if err != nil {
			break
		}
		what := fmt.Sprintf("%s %d of %d from %d by %d", slurmTask, id, n, first, step)
		if step < 1 || (id-first)%step != 0 {
			err = fmt.Errorf("%s is not a place in a regular array", what)
			break
		}
		s, err = shard((id-first)/step+1, n, what)
	case env(kubernetesTask) != "":
		from = kubernetesTask
		i, n := number(kubernetesTask, needed), number(kubernetesCount, needed)
		if err != nil {
			break
		}
		s, err = shard(i+1, n, fmt.Sprintf("%s %d of %d", kubernetesTask, i, n))
	}
	if err != nil {
		err = fmt.Errorf("the shard cannot be read from %s: %w", from, err)
	}
	return s, from, err
}
