package agenda

import (
	"fmt"
	"strconv"
	"strings"

	"rnnbench/record"
)

// mostShards is the largest number of shards. Schedulers allow fewer.
const mostShards = 100_000

// ParseShard reads a shard such as 3/16.
func ParseShard(s string) (record.Shard, error) {
	first, second, ok := strings.Cut(s, "/")
	i, bad := strconv.Atoi(first)
	n, worse := strconv.Atoi(second)
	if !ok || bad != nil || worse != nil {
		return record.Shard{}, fmt.Errorf("%q is not a shard: write one such as 3/16, or off", s)
	}
	return shard(i, n, s)
}

// shard makes a shard of checked numbers; what names the source in errors.
func shard(i, n int, what string) (record.Shard, error) {
	switch {
	case n < 1 || n > mostShards:
		return record.Shard{}, fmt.Errorf("%s: the number of shards must be from 1 to %d", what, mostShards)
	case i < 1 || i > n:
		return record.Shard{}, fmt.Errorf("%s: the shard must be from 1 to %d", what, n)
	}
	return record.Shard{Index: i, Count: n}, nil
}

// OneOf reads a list of shards such as 3,7,9/16 and returns the one at this job's place in its array.
// Retries use it: their array is shorter than the agenda's. env returns an environment variable.
func OneOf(s string, env func(string) string) (record.Shard, error) {
	list, count, _ := strings.Cut(s, "/")
	all := strings.Split(list, ",")
	a, err := FromScheduler(env)
	if err != nil {
		return record.Shard{}, err
	}
	if a == nil {
		return record.Shard{}, fmt.Errorf("%s lists shards, but this is not a job of an array: name one shard, such as %s/%s", s, all[0], count)
	}
	place, err := a.Shard()
	switch {
	case err != nil:
		return record.Shard{}, err
	case place.Count != len(all):
		return record.Shard{}, fmt.Errorf("%s lists %d shards, but the array has %d jobs", s, len(all), place.Count)
	}
	return ParseShard(all[place.Index-1] + "/" + count)
}
