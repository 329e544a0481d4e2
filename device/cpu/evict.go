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
		each := max(leastEvict, 2*cpuid.CPU.Cache.L3)/d.workers + 2*max(0, cpuid.CPU.Cache.L2)
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
