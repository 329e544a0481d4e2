package nvrtc

import (
	"strings"
	"testing"
)

// TestArchitectures: a library compiles machine code for GPUs that it knows, and PTX for later
// ones. It declines those whose kernels it cannot compile.
func TestArchitectures(t *testing.T) {
	for _, c := range []struct {
		major, minor, capability int
		arch                     string // or why there is none
		ptx                      bool
	}{
		{12, 4, 90, "sm_90a", false}, {12, 4, 86, "sm_86", false}, {12, 4, 120, "compute_90", true}, {12, 1, 90, "sm_90a", false},
		{11, 8, 86, "sm_86", false}, {11, 8, 90, "too old for a GPU of compute capability 9.0", false}, {12, 0, 90, "name the folder of 12.1", false},
		{12, 4, 52, "no GPU as old as compute capability 5.2", false},
	} {
		l := &Library{Major: c.major, Minor: c.minor, archs: []int{75, 80, 86, 90}}
		got, err := l.For(c.capability)
		if err != nil {
			if !strings.Contains(err.Error(), c.arch) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if got.arch != c.arch || got.ptx != c.ptx {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
