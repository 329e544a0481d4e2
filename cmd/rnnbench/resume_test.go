package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/config"
)

// TestResumeLabel: a run keeps its label.
func TestResumeLabel(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny+" --label nightly").want(t, exit.Done, nil, nil)
	rnnbench(t, "sweep --resume out --label nightly").want(t, exit.Done, nil, []string{"4 records"})
	rnnbench(t, "sweep --resume out --label weekly").want(t, exit.Usage, nil, []string{`cannot be resumed with another label: its label is "nightly", not "weekly"`})
}

// TestHangUp: closing the terminal, as when ssh breaks down, interrupts the run.
func TestHangUp(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("these tests run under nohup")
	}
	mine := make(chan os.Signal, 1)
	signal.Notify(mine, syscall.SIGHUP) // or it would end the tests once nobody waits for it
	defer signal.Stop(mine)
	p := &program{err: io.Discard}
	ctx, stop := p.Interruptible(t.Context(), p.Progress(nil, 0))
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(syscall.SIGHUP)
	}
	if err != nil {
		t.Skipf("no hang-up here: %v", err)
	}
	<-ctx.Done()
}

// TestInterruptMessageComesFirst: the message of Ctrl-C never follows the command's last message.
func TestInterruptMessageComesFirst(t *testing.T) {
	for range 200 {
		stderr := &trigger{}
		p := &program{err: stderr}
		ctx, cancel := context.WithCancel(t.Context())
		_, stop := p.Interruptible(ctx, p.Progress(nil, 0))
		cancel()
		stop()
		stop() // as a defer does
		n := len(stderr.String())
		time.Sleep(100 * time.Microsecond)
		if late := stderr.String()[n:]; late != "" {
			t.Fatalf("written late: %q", late)
		}
	}
}

func TestInterruptAndResume(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	line := strings.Replace(tiny, "8,16", "8,16,24,32", 1)
	stderr := &trigger{word: "[2/8]", f: cancel}
	var stdout bytes.Buffer
	if code := run(ctx, strings.Fields(line), strings.NewReader(""), &stdout, stderr); code != exit.Interrupted {
		t.Fatalf("exit code %d, want %d:\n%s", code, exit.Interrupted, stderr)
	}
	m, recs, _, err := record.Read(config.Dir)
	if err != nil || len(recs) < 2 || len(recs) >= 8 || *m.Exit != exit.Interrupted {
		t.Fatalf("%v: %d records, exit %v", err, len(recs), m.Exit)
	}
	if !strings.Contains(stdout.String(), "cudnnstyle") || !strings.Contains(stderr.String(), "rnnbench: interrupted\nhint: rnnbench sweep --resume out/"+m.Run) {
		t.Errorf("stdout:\n%s\nstderr:\n%s", &stdout, stderr)
	}

	for _, c := range []struct{ flags, message string }{
		{" -H 8", "cannot be resumed: its plan"},
		{" -H 9,16,24,32", "cannot be resumed: its plan differs from the requested plan of the same size (8 records"},
		{" --label new", `cannot be resumed with another label: its label is none, not "new": omit --label`},
		{" --seed 7", "cannot be resumed: its inputs are normal with seed 1"},
		{" --cache cold", "cannot be resumed: it used hot caches, but the requested setting is cold"},
		{" --simd generic", "cannot be resumed: its instruction set is"},
		{" --threads 1", "cannot be resumed: its device is not"},
	} {
		if c.flags == " --threads 1" && runtime.NumCPU() == 1 || strings.Contains(c.flags, "generic") && m.Devices[0].Facts["simd"] == "generic" {
			continue
		}
		rnnbench(t, "sweep --resume out"+c.flags).want(t, exit.Usage, nil, []string{c.message})
	}

	o := rnnbench(t, "sweep --resume "+m.Run) // all settings come from the run
	o.want(t, exit.Done, []string{"32"}, []string{fmt.Sprintf("/%d]", 8-len(recs)), "8 records in out/" + m.Run})
	again, more, _, err := record.Read(config.Dir)
	if err != nil || again.Run != m.Run || len(more) != 8 || *again.Exit != exit.Done || len(again.Resumed) != 1 {
		t.Fatalf("%v: %d records of %s, exit %v", err, len(more), again.Run, again.Exit)
	}
	for i, r := range recs { // nothing was measured twice
		if more[i].Seq != r.Seq || more[i].Time != r.Time {
			t.Errorf("record %d was measured again", i)
		}
	}
	rnnbench(t, line+" --resume out").want(t, exit.Done, nil, []string{"8 records"}) // the same flags are fine
}
