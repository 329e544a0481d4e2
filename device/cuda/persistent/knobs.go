package persistent

import (
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Knobs are those of layers with weights on chip; 0 has the device
// choose.
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

// KnobDocs are those of persistent layers, with the ways to divide a gradient
// where there is one.
func KnobDocs(gradient bool) []knob.Knob {
	back, wideback := []int{0}, []int{0}
	if gradient {
		wideback = []int{0, 1}
		back = []int{0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32}
	}
	return []knob.Knob{
		residentKnob(),
		{Name: "cluster", Doc: "blocks of a cluster; 0: chosen", Values: append([]int{0}, ClusterSizes()...)},
		{Name: "groups", Doc: "groups spread over the GPU; 0: chosen", Values: []int{0, 1, 2, 3, 4, 8, 16}},
		{Name: "samples", Doc: "sequences that a group runs at a time, in a gradient too where that can; 0: chosen", Values: []int{0, 1, 2, 4, 8, 16, 32}, Max: wideSamples},
		{Name: "tile", Doc: "units of a thread forward, on tensor cores of a warp: 4, 8 or 16; 0: chosen", Values: []int{0, 1, 2, 4, 5, 8, 16}, Max: 16},
		{Name: "lanes", Doc: "threads that share a unit's columns forward; 0: chosen", Values: []int{0, 4, 8, 16, 32}},
		{Name: "share", Doc: "a persistent layer's groups take at most the GPU's multiprocessors divided by this, so that as many layers run side by side; 0: by how many streams have such layers", Values: []int{0, 1, 2, 3, 4}, Max: 32},
		{Name: "tensor", Doc: "products on tensor cores (1) or not (2); single precision takes three for one; 0: chosen", Values: []int{0, 1, 2}},
		{Name: "stack", Doc: "layers whose input is the layer before run with it, as one kernel with the weights of all (1; 3: one that copies h whole, for many sequences), or not (2); 0: where that is expected to be faster", Values: []int{0, 1, 2, 3}},
		{Name: "functions", Doc: "sigmoids and tangents of a persistent layer: by exponentials, right to 1e-7 (1), or by the GPU's tangent, right to 2⁻¹¹ (2); 0: the latter in bf16", Values: []int{0}, Max: 2},
		{Name: "clocks", Doc: "1 leaves the cycles of a step's phases in place of results, to measure", Values: []int{0}, Max: 1},
		{Name: "ring", Doc: "copies of a warp that a layer has room for whose weights come from the L2 cache (resident=7); 0: chosen", Values: []int{0}, Max: 16},
		{Name: "stage", Doc: "halves of 64 bytes of a warp's columns in such a copy; 0: chosen", Values: []int{0}, Max: 2},
		{Name: "near", Doc: "such halves that stay in registers; 0: as many as there is room for", Values: []int{0}, Max: 64},
		{Name: "far", Doc: "such halves that stay in shared memory, at most; 0: as many as there is room for", Values: []int{0}, Max: 64},
		{Name: "parts", Doc: "parts of a group's sequences that take turns in such a layer; 0: chosen", Values: []int{0}, Max: 4},
		{Name: "kept", Doc: "copies of a warp that the L2 cache is asked to keep, where all are more than it holds; 0: chosen", Values: []int{0}, Max: 128},
		{Name: "look", Doc: "pieces of 64 bytes of a sequence's states that a warp of such a layer looks at until they have come; 0: chosen", Values: []int{0}, Max: 8},
		{Name: "ahead", Doc: "portions of so many pieces that it then reads at the same time, 2 at least; 0: chosen", Values: []int{0}, Max: 8},
		{Name: widebackKnob, Doc: "1: warpgroups multiply a gradient for up to 256 sequences at once, in 16 bits (backward-wide); 0: where that is expected to be the fastest", Values: wideback},
		{Name: "back", Doc: "how the gradient is divided: so many places behind what is expected to be the fastest", Values: back, Max: 4096},
	}
}
