package device

// A Kernel is a function that a program launches, with its geometry. Unknown fields are 0 or "".
type Kernel struct {
	Name      string // of the function, as profilers show it
	Variant   string // which of the device's implementations of the operation
	Config    string // in words
	Grid      [3]int // blocks; 0: a library chooses
	Block     [3]int // threads
	Cluster   int    // blocks of a cluster; 0: no clusters
	Registers int    // per thread
	Shared    int    // bytes of shared memory per block
	Spills    int    // bytes of local memory per thread; known if Registers is
	Launches  int    // in one run
	Group     Group  // zero: no weights stay on chip

	// Seconds is the cost model's prediction for one launch; 0: there is no model. Error is the
	// model's relative error on the measurements that it was fitted to; 0: not recorded.
	Seconds, Error float64
}

// A Group is the blocks of a kernel that share one copy of a layer's weights.
type Group struct {
	Blocks  int  // of one layer, if the kernel runs a stack
	Samples int  // sequences that the group multiplies at a time
	Spread  bool // the blocks are spread over the GPU and exchange states through L2; otherwise they form a cluster
	Tensor  bool // products run on tensor cores
	Steps   int  // of one launch
}

// mostKernels is the most entries that Merge returns.
const mostKernels = 512

// Merge adds up the launches of equal kernels, in order of first appearance. Kernels beyond the
// first few hundred are merged into one named "others".
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
