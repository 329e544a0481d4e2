//go:build unix

package worker

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnnbench/device"
)

// TestServeWaits: an idle worker waits in the runtime's poller, not in a blocking read of a pipe,
// such as its standard input.
func TestServeWaits(t *testing.T) {
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		t.Fatal(err)
	}
	in, out := os.NewFile(uintptr(ends[0]), "in"), os.NewFile(uintptr(ends[1]), "out")
	ended := make(chan error)
	go func() { ended <- Serve(in, io.Discard, nil, nil) }()
	for calls := 0; ; { // a busy machine may stop the reader in a call, but not for ten seconds
		state := reader()
		if state == "IO wait" {
			break
		}
		if state == "syscall" { // the poller also makes a short system call, which finds nothing to read
			calls++
		}
		if calls == 10_000 {
			t.Error("the worker waits in a system call")
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := out.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// reader returns the state of the goroutine that reads calls, or "" if there is none.
func reader() string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for one := range strings.SplitSeq(string(stacks), "\n\n") {
		if head, rest, ok := strings.Cut(one, "\n"); ok && strings.Contains(rest, "worker.serve.func1()") && strings.Contains(rest, "os.(*File).Read(") {
			_, state, _ := strings.Cut(strings.TrimSuffix(head, "]:"), "[")
			state, _, _ = strings.Cut(state, ",")
			return state
		}
	}
	return ""
}

// TestSlowDeath: a worker that is killed counts as killed even if it ends long after its pipe, as one does that waits
// for a processor or frees the memory of a GPU.
func TestSlowDeath(t *testing.T) {
	p, err := startProcess(exec.Command("sh", "-c", "exec >&-; sleep 2; kill -9 $$"))
	if err != nil {
		t.Fatal(err)
	}
	if line, err := p.greeting(); err == nil {
		t.Errorf("it says %q", line)
	}
	if err := p.ending(errBroken); !errors.Is(err, device.ErrKilled) || err.Error() != "it ended (signal: killed): "+device.ErrKilled.Error() {
		t.Errorf("a slow death is reported as %v", err)
	}
}

// TestChildrenThatKeepPipes: the time limit also holds if a child process keeps the worker's pipes
// open. The output of a program that is no worker is reported even if it does not end.
func TestChildrenThatKeepPipes(t *testing.T) {
	for _, c := range []struct {
		script, want string
		limit        time.Duration // for a start: what speaks has time on a busy machine as well
	}{
		{"sleep 300; true", "no answer within 1s", time.Second},
		{"echo no GPU here; sleep 300", "failed to start: no GPU here", time.Minute},
		{"echo alas >&2; sleep 300 & :", "no answer within 1s", time.Second},
	} {
		start := time.Now()
		_, err := Open(Options{Start: c.limit, Command: func() *exec.Cmd { return exec.Command("sh", "-c", c.script) }})
		if took := time.Since(start); err == nil || !strings.Contains(err.Error(), c.want) || took > 4*time.Minute {
			t.Errorf("%s: after %v: %v", c.script, took, err)
		}
	}
}
