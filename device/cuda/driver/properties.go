package driver

import "maps"

// Together is how many clusters of a size run at the same time, one block on
// each multiprocessor.
func (p Properties) Together(size int) int {
	if size == 1 {
		return p.SMs
	}
	for n := size; n <= MaxCluster; n++ { // sizes in between have the room of the next that was asked for
		if c, ok := p.Clusters[n]; ok {
			return c
		}
	}
	return 0
}

const MaxCluster = 16

// Share is one of n parts of the GPU.
func (p Properties) Share(n int) Properties {
	p.Part = n > 1
	p.SMs = max(1, p.SMs/n)
	p.Clusters = maps.Clone(p.Clusters)
	for size := range p.Clusters {
		p.Clusters[size] /= n
	}
	return p
}

// Properties describe a GPU.
type Properties struct {
	Index      int
	Model      string
	Capability int  // major·10 + minor
	Hopper     bool // kernels are compiled for capability 9.0 alone, with what others lack: products of four warps, registers that warps hand on
	SMs        int
	Clusters   map[int]int // per number of blocks, how many clusters run at the same time; empty before Hopper
	Part       bool        // of a GPU, whose other parts have work of their own
	Shared     int         // bytes of shared memory that a block can have
	L2         int         // bytes
	Memory     int64       // bytes in all
	Workspace  int64       // bytes that products take per stream
	Replicas   int         // GPUs that train together and sum over all of them; 0: this one is alone
	NoProducts string      // why there are no products; "" where there are
	NoNetworks string      // why the vendor's library runs no networks; "" where it does
	Libraries  map[string]string
}
