package cpu

import (
	"math"
	"slices"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Vocabulary implements device.Device.
func (d *Device) Vocabulary() []knob.Knob { return Vocabulary() }

// Vocabulary lists every knob that a CPU has, whatever its instruction set and
// its number of processors, with the values that one of them may take. 0 is the
// default of each.
func Vocabulary() []knob.Knob {
	const any = math.MaxInt32
	return []knob.Knob{
		{Name: "scansplit", Values: []int{0}, Max: MaxThreads,
			Doc: "workers that split time between them in a scan, the others split channels; 1: channels alone; as many as there are where it is more; 0: by the number of channels"},
		{Name: "scanworkers", Values: []int{0}, Max: MaxThreads,
			Doc: "workers that take part in a scan, at most all; 0: all, but half where one core asks for all that memory gives"},
		{Name: "scanchunk", Values: []int{0}, Max: any,
			Doc: "steps of a worker's chunk of time in a scan; 0: as many as its cache holds"},
		{Name: "teams", Values: []int{0}, Max: MaxThreads,
			Doc: "groups that the workers form to serve streams side by side; 0: by the size of the operations"},
		{Name: "bands", Values: []int{0}, Max: MaxThreads,
			Doc: "workers that share a layer's units in a persistent operation; 0: one whose nearest cache holds their weights (two from half of it on, where one call runs all steps), else all that have some"},
		{Name: "sequences", Values: []int{0}, Max: 2,
			Doc: "how workers share the sequences of a persistent operation; 1: each has all, and units of its own; 2: each has its own, and all units; 0: 2 where the nearest cache holds the weights, or L2 and each worker has four sequences"},
		{Name: "ahead", Values: []int{0}, Max: any,
			Doc: "steps whose input product a persistent operation forms while it runs those before; 0: 16 to 64 where bands wait for weights from L2 or L3, or a worker has no band, else none; as many as there are: none"},
	}
}

// Knobs implements device.Device.
func (d *Device) Knobs(s *schedule.Schedule) []knob.Knob {
	knobs := d.scanKnobs(s)
	if most := min(s.Streams, d.workers); most > 1 {
		knobs = append(knobs, offer("teams", most, choices(most)...))
	}
	if d.workers > 1 && persists(s) {
		knobs = append(knobs, offer("bands", d.workers, choices(d.workers)...))
	}
	if d.workers > 1 && slices.ContainsFunc(s.Nodes, func(n schedule.Node) bool { return sequences(n.Op) > 1 }) {
		knobs = append(knobs, offer("sequences", 2, 0, 1, 2))
	}
	if steps := d.formed(s); steps > 0 {
		values := slices.Compact([]int{0, min(aheadBlock, steps), min(4*aheadBlock, steps), steps})
		knobs = append(knobs, offer("ahead", 0, values...))
	}
	return knobs
}

// scanKnobs are those of schedules with scans.
func (d *Device) scanKnobs(s *schedule.Schedule) []knob.Knob {
	steps := 0
	for _, n := range s.Nodes {
		switch op := n.Op.(type) {
		case schedule.Scan:
			steps = max(steps, op.Steps)
		case schedule.ScanBackward:
			steps = max(steps, op.Steps)
		}
	}
	if steps == 0 {
		return nil
	}
	split := []int{0, 1}
	if d.workers > 1 {
		split = choices(d.workers)
	}
	chunks := []int{0}
	for n := 16; n < steps && n <= 4096 && d.workers > 1; n *= 4 {
		chunks = append(chunks, n)
	}
	return []knob.Knob{
		offer("scansplit", MaxThreads, split...), offer("scanworkers", MaxThreads, split...), offer("scanchunk", steps, chunks...),
	}
}

// offer is the knob of that name with the values worth trying here. It takes any
// integer up to most; 0: those values alone.
func offer(name string, most int, values ...int) knob.Knob {
	all := Vocabulary()
	k := all[slices.IndexFunc(all, func(k knob.Knob) bool { return k.Name == name })]
	k.Values, k.Max = values, most
	return k
}

// choices are 0, the powers of two below most, and most.
func choices(most int) []int {
	values := []int{0, 1}
	for n := 2; n < most; n *= 2 {
		values = append(values, n)
	}
	return append(values, most)
}
