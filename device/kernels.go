package device

// A Kernel is a function that a program launches, with its geometry. What is unknown
// is 0, or "".
type Kernel struct {
	Name      string // of the function, as profilers show it
	Variant   string // of the ways that the device has for such an operation
	Config    string // in words
	Grid      [3]int // blocks; 0: a library chooses
	Block     [3]int // threads
	Cluster   int    // blocks of a cluster; 0: there are none
	Registers int    // per thread
	Shared    int    // bytes of shared memory per block
	Spills    int    // bytes of local memory per thread; known if Registers are
	Launches  int    // by one run
	Group     Group  // zero: it keeps no weights on chip

	// Seconds are what a cost model expects of one launch; 0: no model knows it.
	// Error is by how much, relative to the measurements, the model was wrong where
	// it was fitted; 0: not recorded.
	Seconds, Error float64
}

// A Group is the blocks of a kernel that share one copy of a layer's weights.
type Group struct {
	Blocks  int  // of one layer, where a kernel runs a stack
	Samples int  // sequences that they multiply at a time
	Spread  bool // over the GPU, so that states travel through its L2 cache; else they are a cluster
	Tensor  bool // they multiply on tensor cores
	Steps   int  // that one launch takes, one after another
}

// mostKernels is how many different kernels are told apart.
const mostKernels = 512

// Merge adds up the launches of equal kernels, in the order of their first ones. What
// is beyond the first few hundred is one kernel by the name of "others".
func Merge(all []Kernel) []Kernel {
	at := map[Kernel]int{}
	out := []Kernel{}
	for _, k := range all {
		key := k
		key.Launches = 0
		if _, ok := at[key]; !ok && len(at) >= mostKernels-1 {
			key = Kernel{Name: "others"}
		}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, key)
		}
		out[i].Launches += k.Launches
	}
	return out
}
