package rival

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestPaused: a rival is stopped between requests, and resumed for the next one.
func TestPaused(t *testing.T) {
	t.Setenv("RNNBENCH_TEST_RIVAL", "honest")
	p, err := start("stranger", []string{os.Args[0]})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	for range 3 {
		if _, _, err := p.ask(time.Minute, request{Hello: version}); err != nil {
			t.Fatal(err)
		}
		state := ""
		for deadline := time.Now().Add(time.Minute); state != "T" && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
			if err != nil {
				t.Skip("there is no /proc: ", err)
			}
			state = strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))[0]
		}
		if state != "T" {
			t.Fatalf("its state is %s, not T (stopped)", state)
		}
	}
}
