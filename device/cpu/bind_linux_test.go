package cpu

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// allowedList returns the process's processors as /proc shows them, which are those of its first
// thread.
func allowedList(t *testing.T) string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(list)
		}
	}
	t.Skip("/proc/self/status has no list of processors")
	return ""
}

// TestBindingStaysWithWorkers opens devices one after another. Each sees the same processors as the
// first one, and the process's set of processors never changes.
func TestBindingStaysWithWorkers(t *testing.T) {
	want, all := allowedList(t), hostTopology().Default()
	for i := range 60 {
		d, err := Open(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.pool.do(func(int) {}); err != nil {
			t.Fatal(err)
		}
		if got := d.Info().Workers; got != all {
			t.Fatalf("device %d has %d workers, the first one %d", i+1, got, all)
		}
		if got := allowedList(t); got != want {
			t.Fatalf("with device %d open the process may use %s, before %s", i+1, got, want)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if got := allowedList(t); got != want {
			t.Fatalf("after device %d the process may use %s, before %s", i+1, got, want)
		}
	}
}

// TestCallerIsBoundWhileItWorks runs work of two workers from a thread of a host program. The thread
// has one processor, that of the first seat, during the work, and what it had before after it.
func TestCallerIsBoundWhileItWorks(t *testing.T) {
	d, err := Open(Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	seats := d.pool.seats(2)
	id := d.pool.processor(seats)
	if id < 0 {
		t.Skip("this process may run on one processor alone, so workers are not bound")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, during, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Skip(err)
	}
	err = d.pool.with(seats, func(worker int) {
		if worker == 0 {
			_ = unix.SchedGetaffinity(0, &during)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.SchedGetaffinity(0, &after)
	if during.Count() != 1 || !during.IsSet(id) {
		t.Errorf("during the work the caller may run on %d processors, and not on %d alone", during.Count(), id)
	}
	if after != before {
		t.Errorf("after the work the caller may run on %d processors, before on %d", after.Count(), before.Count())
	}
}
