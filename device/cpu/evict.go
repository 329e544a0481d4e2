package cpu

import (
	"github.com/klauspost/cpuid/v2"

	"rnnbench/device"
)

var _ device.Evicter = (*Device)(nil)

// leastEvict is the least number of bytes that Evict writes: more than the last cache of most
// machines, in case its size is unknown.
const leastEvict = 64 << 20

// Evict implements device.Evicter. Every worker writes to twice the size of its L2, and all workers
// together to twice the size of the last cache.
func (d *Device) Evict() error {
	if d.eviction == nil {
		each := evicts(cpuid.CPU.Cache.L3, cpuid.CPU.Cache.L2, d.workers)
		d.eviction = make([][]byte, d.workers)
		for w := range d.eviction {
			d.eviction[w] = make([]byte, each)
		}
	}
	return d.pool.do(func(w int) {
		for i := 0; i < len(d.eviction[w]); i += 64 {
			d.eviction[w][i]++
		}
	})
}

// evicts returns how many bytes each worker writes to evict caches of these sizes, in bytes; a size
// below 1 is unknown.
func evicts(l3, l2, workers int) int { return max(leastEvict, 2*l3)/workers + 2*max(0, l2) }
