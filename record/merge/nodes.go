package merge

import (
	"maps"
	"math"
	"slices"

	"rnnbench/record"
)

// Nodes compares machines by their times at the control point. controls are its records from all
// shards. all also has the records of machines that did not measure it.
func Nodes(all, controls []record.Record) []record.NodeSpeed {
	shards := map[string]map[int]bool{}
	for i := range all {
		name, shard := origin(&all[i])
		if shards[name] == nil {
			shards[name] = map[int]bool{}
		}
		shards[name][shard] = true
	}
	byKey := map[string]map[string][]float64{} // key → node → seconds
	noise := map[string]float64{}              // the largest relative standard error of a key's records
	for i := range controls {
		r := &controls[i]
		t := r.Seconds()
		if t <= 0 {
			continue
		}
		key := r.Key()
		name, _ := origin(r)
		if byKey[key] == nil {
			byKey[key] = map[string][]float64{}
		}
		byKey[key][name] = append(byKey[key][name], math.Log(t))
		noise[key] = max(noise[key], deviation(r))
	}
	ratios, doubts := map[string][]float64{}, map[string][]float64{}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		var means []float64
		for _, name := range slices.Sorted(maps.Keys(byKey[key])) {
			means = append(means, mean(byKey[key][name]))
		}
		middle := median(means)
		for name, times := range byKey[key] {
			ratios[name] = append(ratios[name], mean(times)-middle)
			// Several shards on one machine show the spread from run to run.
			e := max(noise[key], spread(times)) / math.Sqrt(float64(len(times)))
			doubts[name] = append(doubts[name], e*e)
		}
	}
	var list []record.NodeSpeed
	for _, name := range slices.Sorted(maps.Keys(shards)) {
		n := record.NodeSpeed{Name: name, Shards: slices.Sorted(maps.Keys(shards[name]))}
		if k := float64(len(ratios[name])); k > 0 {
			ratio := math.Exp(mean(ratios[name]))
			sum := 0.0
			for _, e := range doubts[name] {
				sum += e
			}
			// Two standard errors of the difference to a median that is just as uncertain. If
			// techniques disagree, there is noise that their intervals do not show.
			within := 2 * math.Sqrt2 * max(math.Sqrt(sum)/k, spread(ratios[name])/math.Sqrt(k))
			n.Ratio, n.Noise = &ratio, &within
		}
		list = append(list, n)
	}
	return list
}

// origin is the machine and the shard of a record.
func origin(r *record.Record) (name string, shard int) {
	if r.Node == nil {
		return "unknown", 0
	}
	if r.Node.Shard != nil {
		shard = number(*r.Node.Shard)
	}
	return r.Node.Name, shard
}

// number is the 3 of 3/16.
func number(s string) (n int) {
	for _, c := range s {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// unknown is the least relative standard error assumed of a time without an interval.
const unknown = 0.05

// deviation is the relative standard error of a record's median.
func deviation(r *record.Record) float64 {
	if s := r.Stats; s.Lo != nil && s.Hi != nil && s.Median > 0 {
		return (*s.Hi - *s.Lo) / 2 / 1.96 / s.Median
	}
	return max(unknown, (r.Stats.Max-r.Stats.Min)/2/r.Stats.Median)
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

// spread is the standard deviation; 0 for a single value.
func spread(list []float64) float64 {
	if len(list) < 2 {
		return 0
	}
	m, sum := mean(list), 0.0
	for _, v := range list {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum / float64(len(list)-1))
}
