package cpu

import (
	"os"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processors lists the processors that this process may run on. It asks the system once, before any
// thread is bound, since later answers depend on the thread that asks.
var processors = sync.OnceValue(func() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var out []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			out = append(out, i)
		}
	}
	return out
})

// bind binds the calling thread to one processor.
func bind(processor int) {
	var set unix.CPUSet
	set.Set(processor)
	_ = unix.SchedSetaffinity(0, &set)
}

// borrowProcessor binds the calling thread to one of the processors that it may run on. giveBack lets
// it run on all of them again.
func borrowProcessor(id int) (giveBack func()) {
	var was, one unix.CPUSet
	one.Set(id)
	if unix.SchedGetaffinity(0, &was) != nil || !was.IsSet(id) || was == one || unix.SchedSetaffinity(0, &one) != nil {
		return func() {}
	}
	return func() { _ = unix.SchedSetaffinity(0, &was) }
}

// leader reports whether the calling thread is the process's first one. That thread never ends, and
// /proc shows its binding as the process's.
func leader() bool { return unix.Gettid() == unix.Getpid() }

// yield lets the system run another thread on this processor.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// nap sleeps for 20 microseconds.
func nap() {
	t := unix.NsecToTimespec(20_000)
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}

// model returns the processor's name, or "".
func model() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// allocate returns n zeroed floats outside the garbage-collected heap, in huge pages if the system
// has them, and the function that frees them.
func allocate(n int) ([]float32, func() error, error) {
	size := (4*n + pageSize - 1) / pageSize * pageSize
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, err
	}
	if size >= hugePage {
		_ = unix.Madvise(mem, unix.MADV_HUGEPAGE) // only advice
	}
	return floats(mem)[:n], func() error { return unix.Munmap(mem) }, nil
}

const (
	pageSize = 4096
	hugePage = 2 << 20
)
