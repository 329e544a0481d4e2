package cpu

import (
	"math"
	"slices"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Vocabulary implements device.Device.
func (d *Device) Vocabulary() []knob.Knob { return Vocabulary() }

// Vocabulary lists every knob of CPUs, for any instruction set and any number of processors, with
// the values that it may take. The default of each is 0.
func Vocabulary() []knob.Knob {
	const any = math.MaxInt32
	return []knob.Knob{
		{Name: "workers", Values: []int{0}, Max: MaxThreads,
			Doc: "workers that run the schedule, while the others sleep; 0: all"},
		{Name: "scansplit", Values: []int{0}, Max: MaxThreads,
			Doc: "workers that split a scan over time; the rest split channels; 1: channels only; more than all workers: all; 0: chosen from the number of channels"},
		{Name: "scanworkers", Values: []int{0}, Max: MaxThreads,
			Doc: "workers in a scan; more than all workers: all; 0: all, or half if one core saturates memory bandwidth"},
		{Name: "scanchunk", Values: []int{0}, Max: any,
			Doc: "time steps in a worker's chunk of a scan; 0: as many as fit in its cache"},
		{Name: "scanlanes", Values: []int{0}, Max: 1024,
			Doc: "stretches of a worker's time that run side by side in the lanes of vectors; 1: none; 0: as many as fill vectors, if channels are few"},
		{Name: "teams", Values: []int{0}, Max: MaxThreads,
			Doc: "teams of workers that serve streams concurrently; 0: chosen from the size of the operations"},
		{Name: "bands", Values: []int{0}, Max: MaxThreads,
			Doc: "workers that share a layer's units in a persistent operation; 0: one if its nearest cache holds the weights (two from half of that cache on, if one call runs all steps), else all workers that get units"},
		{Name: "sequences", Values: []int{0}, Max: 2,
			Doc: "how workers share a persistent operation; 1: each runs some units of all sequences; 2: each runs all units of some sequences; 0: 2 if the nearest cache holds the weights, or if L2 does and each worker has enough sequences (four, with tiles eight, and four times as many where weights fill L2); else 1"},
		{Name: "crews", Values: []int{0}, Max: MaxThreads,
			Doc: "groups of workers in a persistent operation of many sequences; each group has sequences of its own, and its workers share the units; 0: by the predicted time of a step"},
		{Name: "ahead", Values: []int{0}, Max: any,
			Doc: "time steps per input product that a persistent operation computes ahead; 0: 16 to 64 if bands wait for weights from L2 or L3 or a worker has no band, else none ahead; all steps: none ahead"},
	}
}

// Knobs implements device.Device.
func (d *Device) Knobs(s *schedule.Schedule) []knob.Knob {
	knobs := append(workerKnob(d.workers), d.scanKnobs(s)...)
	if most := min(computing(s), d.workers); most > 1 {
		knobs = append(knobs, offer("teams", most, choices(most)...))
	}
	if d.workers > 1 && persists(s) {
		knobs = append(knobs, offer("bands", d.workers, choices(d.workers)...))
	}
	if d.workers > 1 && slices.ContainsFunc(s.Nodes, func(n schedule.Node) bool { return sequences(n.Op) > 1 }) {
		knobs = append(knobs, offer("sequences", 2, 0, 1, 2))
	}
	if d.workers >= 4 && slices.ContainsFunc(s.Nodes, func(n schedule.Node) bool { return sequences(n.Op) > 1 }) {
		knobs = append(knobs, offer("crews", d.workers, groupings(d.workers)...))
	}
	if steps := d.formed(s); steps > 0 {
		values := slices.Compact([]int{0, min(aheadBlock, steps), min(4*aheadBlock, steps), steps})
		knobs = append(knobs, offer("ahead", 0, values...))
	}
	return knobs
}

// scanKnobs returns the knobs of schedules with scans.
func (d *Device) scanKnobs(s *schedule.Schedule) []knob.Knob {
	split := []int{0, 1}
	if d.workers > 1 {
		split = choices(d.workers)
	}
	steps := 0 // of scans that may split time
	for _, n := range s.Nodes {
		switch op := n.Op.(type) {
		case schedule.Scan:
			steps = max(steps, op.Steps)
		case schedule.ScanBackward:
			steps = max(steps, op.Steps)
		}
		if schedule.SerialScan(n.Op) {
			return []knob.Knob{offer("scanworkers", MaxThreads, split...)}
		}
	}
	if steps == 0 {
		return nil
	}
	chunks := []int{0}
	for n := 16; n < steps && n <= 4096 && d.workers > 1; n *= 4 {
		chunks = append(chunks, n)
	}
	return []knob.Knob{
		offer("scansplit", MaxThreads, split...), offer("scanworkers", MaxThreads, split...), offer("scanchunk", steps, chunks...), offer("scanlanes", 1024, 0, 1),
	}
}

// offer returns the knob of that name with the values worth trying here. It accepts any integer up
// to most; 0: only the values.
func offer(name string, most int, values ...int) knob.Knob {
	all := Vocabulary()
	k := all[slices.IndexFunc(all, func(k knob.Knob) bool { return k.Name == name })]
	k.Values, k.Max = values, most
	return k
}

// groupings returns 0 and the numbers of equal groups of at least two workers each.
func groupings(workers int) []int {
	values := []int{0, 1}
	for n := 2; n <= workers/2; n++ {
		if workers%n == 0 {
			values = append(values, n)
		}
	}
	return values
}

// choices returns 0, the powers of two below most, and most.
func choices(most int) []int {
	values := []int{0, 1}
	for n := 2; n < most; n *= 2 {
		values = append(values, n)
	}
	return append(values, most)
}
