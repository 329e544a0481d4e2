package persistent

import (
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Knobs returns the knobs of s if it has persistent layers. 0 lets the device choose.
func Knobs(s *schedule.Schedule) []knob.Knob {
	found, gradient := false, false
	for op := range s.Operations() {
		switch op.(type) {
		case schedule.Persistent:
			found = true
		case schedule.PersistentBackward:
			found, gradient = true, true
		}
	}
	if !found {
		return nil
	}
	return KnobDocs(gradient)
}

// KnobDocs returns the knobs of persistent layers. gradient: with those that divide a gradient.
func KnobDocs(gradient bool) []knob.Knob {
	back, wideback := []int{0}, []int{0}
	if gradient {
		wideback = []int{0, 1}
		back = []int{0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32}
	}
	return []knob.Knob{
		residentKnob(),
		{Name: "cluster", Doc: "blocks per cluster; with resident=9, those that share the columns of a cell with one gate; 0: chosen", Values: append([]int{0}, ClusterSizes()...)},
		{Name: "groups", Doc: "groups spread over the GPU; 0: chosen", Values: []int{0, 1, 2, 3, 4, 8, 16}},
		{Name: "samples", Doc: "sequences that a group runs at a time, in a gradient too if possible; 0: chosen", Values: []int{0, 1, 2, 4, 8, 16, 32}, Max: wideSamples},
		{Name: "tile", Doc: "forward: units per thread; on tensor cores units per warp: 4, 8 or 16; 0: chosen", Values: []int{0, 1, 2, 4, 5, 8, 16}, Max: 16},
		{Name: "lanes", Doc: "forward: threads that share a unit's columns; 0: chosen", Values: []int{0, 4, 8, 16, 32}},
		{Name: "share", Doc: "a persistent layer's groups take at most the GPU's multiprocessors divided by this, so that as many layers run side by side; 0: by the number of streams with such layers", Values: []int{0, 1, 2, 3, 4}, Max: 32},
		{Name: "tensor", Doc: "products on tensor cores (1) or not (2); single precision needs three products for one; 0: chosen", Values: []int{0, 1, 2}},
		{Name: "stack", Doc: "stacked layers run as one kernel that holds the weights of all (1; 3: one that copies all of h, for many sequences), or one by one (2); 0: as one if predicted to be faster", Values: []int{0, 1, 2, 3}},
		{Name: "functions", Doc: "sigmoids and tangents of a persistent layer: by exponentials, accurate to 1e-7 (1), or by the GPU's tangent, accurate to 2⁻¹¹ (2); 0: the latter in bf16", Values: []int{0}, Max: 2},
		{Name: "clocks", Doc: "1: the kernel writes the cycles of a step's phases in place of results, for measurements", Values: []int{0}, Max: 1, Internal: true},
		{Name: "ring", Doc: "streamed weights (resident=7): places for copies, per warp; 0: chosen", Values: []int{0}, Max: 16, Internal: true},
		{Name: "stage", Doc: "streamed weights: halves of 64-byte pieces of a warp's columns per copy; in a gradient, pieces; 0: chosen", Values: []int{0}, Max: 2, Internal: true},
		{Name: "near", Doc: "streamed weights: such halves that stay in registers; 0: as many as fit", Values: []int{0}, Max: 64, Internal: true},
		{Name: "far", Doc: "streamed weights: most such halves in shared memory; 0: as many as fit", Values: []int{0}, Max: 64, Internal: true},
		{Name: "parts", Doc: "streamed weights: parts of a group's sequences that take turns; 0: chosen", Values: []int{0}, Max: 4, Internal: true},
		{Name: "kept", Doc: "streamed weights: copies per warp that the L2 cache is asked to keep, if it cannot hold all; 0: chosen", Values: []int{0}, Max: 128, Internal: true},
		{Name: "look", Doc: "streamed weights: 64-byte pieces of a sequence's states that a warp polls; 0: chosen", Values: []int{0}, Max: 8, Internal: true},
		{Name: "ahead", Doc: "streamed weights: portions of as many pieces that the warp then reads at the same time, at least 2; 0: chosen", Values: []int{0}, Max: 8, Internal: true},
		{Name: widebackKnob, Doc: "1: warpgroups multiply a gradient for up to 256 sequences at once, in 16 bits (backward-wide); 0: if predicted to be the fastest", Values: wideback},
		{Name: "back", Doc: "how the gradient is divided: 0: as predicted to be the fastest; n: the n-th division after that", Values: back, Max: 4096},
	}
}
