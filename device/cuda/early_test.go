package cuda_test

import (
	"strings"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestEarlyStartsWait: a kernel that may begin before the previous one ends waits for that end
// itself.
func TestEarlyStartsWait(t *testing.T) {
	all := []*schedule.Schedule{runs(t), sharedFactors(t)}
	for _, size := range [][3]int{{65536, 1, 256}, {65536, 1, 64}, {1024, 64, 256}, {3000, 1, 32}} {
		for _, train := range []bool{false, true} {
			s, _, _ := scans(t, cell.GILR, size[0], size[1], size[2], train)
			all = append(all, s)
		}
	}
	some := 0
	for _, s := range all {
		launches, texts, err := cuda.Sources(s, nil, h200())
		if err != nil {
			t.Fatal(err)
		}
		early, err := cuda.Early(s, nil, h200())
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range launches {
			if early[i] && !strings.Contains(texts[i], "wait_previous()") {
				t.Errorf("%s may begin early and does not wait", l.Name)
			}
			if early[i] && strings.HasPrefix(l.Name, "scan") {
				some++
			}
		}
	}
	if some < 12 {
		t.Errorf("%d scans may begin early, want 12", some)
	}
}
