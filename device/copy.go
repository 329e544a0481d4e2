package device

import (
	"runtime"
	"sync"
)

// Copy copies min(len(dst), len(src)) elements and returns that number. It splits long copies among
// several processors, since one alone cannot use the whole memory bandwidth.
func Copy[T byte | float32](dst, src []T) int {
	const (
		least = 1 << 18 // elements of a part, at least
		most  = 16      // parts, at most
	)
	n := min(len(dst), len(src))
	parts := min(most, runtime.NumCPU(), n/least)
	if parts <= 1 {
		return copy(dst, src)
	}
	var wg sync.WaitGroup
	for i := range parts {
		from, to := i*n/parts, (i+1)*n/parts
		wg.Go(func() { copy(dst[from:to], src[from:to]) })
	}
	wg.Wait()
	return n
}
