package tuner

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// A tidier bounds the garbage of checks between samples, where the collector is off.
type tidier struct {
	kept uint64 // bytes of the heap after the latest collection
}

// leastGarbage is the garbage, in bytes, that is not worth a collection: that takes as long as a
// short sample.
const leastGarbage = 4 << 20

// garbageOf is how much garbage may lie about before the next step of measuring l, in bytes. Where a
// check leaves much behind, a collection is short beside the check.
func garbageOf(l *Layout) uint64 { return max(leastGarbage, uint64(hostMemory(l.Problem)/4)) }

// tidy collects garbage if there is more of it than so many bytes.
func (t *tidier) tidy(most uint64) {
	if t.kept == 0 || heapBytes() > t.kept+most {
		runtime.GC()
		t.kept = heapBytes()
	}
}

// heapBytes is the size of all objects on the heap, garbage included. It stops nothing.
func heapBytes() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// thoroughly calls a check that allocates much, with the collector on. If it was off, no collection
// goes on afterwards, when the next sample may be taken.
func thoroughly(check func() error) error {
	was := debug.SetGCPercent(stepwiseGarbage)
	err := check()
	if debug.SetGCPercent(was); was < 0 {
		runtime.GC()
	}
	return err
}
