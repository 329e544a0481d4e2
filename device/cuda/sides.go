package cuda

import (
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// sides is how many streams of s have persistent layers.
func sides(s *schedule.Schedule) int {
	on := map[int]bool{}
	for _, n := range s.Nodes {
		switch n.Op.(type) {
		case schedule.Persistent, schedule.PersistentBackward:
			on[n.Stream%launch.MaxStreams] = true
		}
	}
	return len(on)
}
