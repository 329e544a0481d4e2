package lower

import (
	"math"
	"testing"
)

// TestLastEnd: commands of several streams share the GPU, wait for each other and for the host.
func TestLastEnd(t *testing.T) {
	full := func(stream int, wait ...int) timedNode {
		return timedNode{stream: stream, wait: wait, commands: []timedCommand{{seconds: 4, work: 4}}}
	}
	latency := func(stream int, seconds, work float64, wait ...int) timedNode {
		return timedNode{stream: stream, wait: wait, commands: []timedCommand{{seconds: seconds, work: work}}}
	}
	for _, test := range []struct {
		name  string
		nodes []timedNode
		want  float64
	}{
		{"nothing", nil, 0},
		{"one stream", []timedNode{full(0), full(0)}, 8},
		{"products that fill the GPU", []timedNode{full(0), full(3)}, 8},
		{"a product beside half of the GPU", []timedNode{full(0), latency(1, 4, 2)}, 6},
		{"steps that use little", []timedNode{latency(0, 4, 0), latency(1, 6, 1)}, 6},
		{"a product after another stream's", []timedNode{full(0), full(1, 0)}, 8.5},
		{"a wait for a node that launches nothing", []timedNode{full(0), {stream: 0}, full(1, 1)}, 8.5},
		{"one that overlaps for half of its time", []timedNode{latency(0, 2, 0), full(0), latency(1, 4, 4)}, 8},
		{"the host", []timedNode{{commands: []timedCommand{{host: 3, seconds: 1}, {host: 3.5, seconds: 1}, {host: 7, seconds: 1}}}}, 8},
	} {
		if got := lastEnd(test.nodes, 0.5); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: the last ends at %v; want %v", test.name, got, test.want)
		}
	}
}
