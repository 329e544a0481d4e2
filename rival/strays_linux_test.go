package rival

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestStrays: a grandchild with a session of its own is stopped with the rival, and ends with it,
// whether the rival is closed or killed.
func TestStrays(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("the rival of this test needs setsid")
	}
	t.Setenv("RNNBENCH_TEST_RIVAL", "orphan hello")
	state := func(pid int) string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return ""
		}
		return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))[0]
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	for name, end := range map[string]func(*process){"closed": (*process).close, "killed": (*process).kill} {
		p, err := start("stranger", []string{os.Args[0]})
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		var pids []int
		patience := 10 * time.Millisecond
		stopped := func() bool {
			if _, _, err := p.ask(time.Minute, request{Hello: version}); err != nil {
				t.Fatal(err)
			}
			patience *= 2 // a signal takes effect when the process is scheduled, and the next request resumes it
			for asked := time.Now(); ; time.Sleep(time.Millisecond) {
				pids = strays(p.mark, p.cmd.Process.Pid)
				if len(pids) > 0 && !slices.ContainsFunc(pids, func(pid int) bool { return state(pid) != "T" }) {
					return true
				}
				if time.Since(asked) > patience {
					return false
				}
			}
		}
		until("the grandchild is not stopped", stopped) // by the answer after it has started
		end(p)
		for _, pid := range pids {
			until(fmt.Sprintf("%s: the grandchild %d lives on", name, pid), func() bool { s := state(pid); return s == "" || s == "Z" })
		}
	}
}

// TestStrayMidExec: a known stray is killed while the kernel shows no environment of it, as it does
// when the stray starts another program. A process that is not known is left alone.
func TestStrayMidExec(t *testing.T) {
	var list []*exec.Cmd
	for range 2 {
		c := exec.Command("sleep", "600")
		c.Env = []string{}
		if err := c.Start(); err != nil {
			t.Skip("this test needs sleep: ", err)
		}
		defer func() { _ = c.Process.Kill() }()
		list = append(list, c)
	}
	killStrays("RNNBENCH_RIVAL=0-0", 0, []int{list[0].Process.Pid})
	if err := list[0].Wait(); err == nil || list[0].ProcessState.Exited() {
		t.Errorf("the known stray ended with %v, and was not killed", err)
	}
	if _, bare := environment(list[1].Process.Pid, "RNNBENCH_RIVAL=0-0"); !bare {
		t.Error("a process that is no stray was killed")
	}
}
