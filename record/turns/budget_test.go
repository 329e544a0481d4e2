package turns

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBudget: pairs run while one more fits, two at a time where both do.
func TestBudget(t *testing.T) {
	b := Budget{Time: 10 * time.Minute, Most: 5}
	for _, c := range []struct {
		done           int
		spent, longest time.Duration
		want           int
	}{
		{0, 0, 0, 1},
		{0, time.Hour, 0, 1}, // one pair always runs
		{1, 2 * time.Minute, 2 * time.Minute, 2},
		{3, 7 * time.Minute, 2 * time.Minute, 1},
		{4, 9 * time.Minute, 2 * time.Minute, 0},
		{4, 1 * time.Minute, time.Second, 1},
		{5, 1 * time.Minute, time.Second, 0},
		{6, 1 * time.Minute, time.Second, 0},
	} {
		if got := b.pairs(c.done, c.spent, c.longest); got != c.want {
			t.Errorf("after %d pairs and %v, of up to %v: %d, want %d", c.done, c.spent, c.longest, got, c.want)
		}
	}
}

// TestClaim: a folder goes on with what it was made for, and with nothing else.
func TestClaim(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.json")
	for _, c := range []struct{ what, want string }{
		{"a", ""}, {"a", ""}, {"b", "holds runs of something else"},
	} {
		if err := Claim(path, []string{c.what}); err == nil != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Claim(path, "a"); err == nil || !strings.Contains(err.Error(), "is broken") {
		t.Error(err)
	}
}
