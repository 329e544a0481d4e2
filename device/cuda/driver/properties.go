package driver

import "maps"

// Together returns how many clusters of size blocks run at the same time, with one block on each
// multiprocessor.
func (p Properties) Together(size int) int {
	if size == 1 {
		return p.SMs
	}
	for n := size; n <= MaxCluster; n++ { // an unmeasured size counts as the next larger measured one
		if c, ok := p.Clusters[n]; ok {
			return c
		}
	}
	return 0
}

const MaxCluster = 16

// Share returns the properties of one of n equal parts of the GPU.
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
	Hopper     bool // kernels are compiled for capability 9.0 alone: they may multiply by warpgroups and move registers between warps
	SMs        int
	Clusters   map[int]int // per number of blocks, how many clusters run at the same time; empty before Hopper
	Part       bool        // these are part of a GPU, whose other parts do other work
	Shared     int         // bytes of shared memory per block, at most
	L2         int         // bytes
	Memory     int64       // bytes in all
	Workspace  int64       // bytes of the library's workspace per stream
	Replicas   int         // GPUs that train together and add up their gradients; 0: this one is alone
	NoProducts string      // why the library cannot multiply; "" if it can
	NoNetworks string      // why the library runs no networks; "" if it does
	Libraries  map[string]string
}
