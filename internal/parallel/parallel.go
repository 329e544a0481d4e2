// Package parallel divides loops over the processors.
package parallel

import (
	"math"
	"runtime"
	"sync"
)

// For runs f(0) … f(n-1) on all processors.
func For(n int, f func(i int)) { Share(n, math.Inf(1), f) }

// Share runs f(0) … f(n-1) on as many processors as have enough of flops, the floating-point
// operations in all, to do. A step of a small layer is over before dozens of processors are awake.
func Share(n int, flops float64, f func(i int)) {
	const enough = 1 << 18
	workers := int(min(float64(min(runtime.NumCPU(), n)), flops/enough))
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w * n / workers; i < (w+1)*n/workers; i++ {
				f(i)
			}
		})
	}
	wg.Wait()
}
