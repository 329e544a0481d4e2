package device

import (
	"runtime"
	"sync"
)

// Copy copies as many elements as dst and src both have, and returns how many: by
// several processors where they are many, since one alone is slower than memory.
func Copy[T byte | float32](dst, src []T) int {
	const (
		least = 1 << 18 // elements of a part
		most  = 16      // parts
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
