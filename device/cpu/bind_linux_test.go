package cpu

import (
	"os"
	"strings"
	"testing"
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
