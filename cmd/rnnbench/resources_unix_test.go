//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"rnnbench/internal/exit"
)

// TestLacking: where the shell's limits would make Go's runtime dump its threads, the program says so
// in one sentence.
func TestLacking(t *testing.T) {
	for _, c := range []struct{ limit, want string }{
		{"-n 6", "rnnbench: too few files may be opened (ulimit -n): raise the limit to 64 or more\n"},
		{"-v 1800000", "rnnbench: too little memory may be addressed (ulimit -v 1800000): raise the limit to 3670016 or more\n"},
	} {
		cmd := exec.Command("sh", "-c", "ulimit "+c.limit+` && exec "$0" "$@"`, os.Args[0], asProgram, "sweep", "--help")
		said, err := cmd.CombinedOutput()
		var ended *exec.ExitError
		if strings.Contains(string(said), "not a valid") || strings.Contains(string(said), "modify limit") {
			t.Logf("this shell knows no ulimit %s", c.limit)
			continue
		}
		if !errors.As(err, &ended) || ended.ExitCode() != exit.Error || string(said) != c.want {
			t.Errorf("ulimit %s: %v, said %.300q, want %q", c.limit, err, said, c.want)
		}
	}
}
