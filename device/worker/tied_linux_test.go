package worker_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/worker"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// asParent makes the test binary start a worker, stop it and wait.
const asParent = "parent"

// parent starts a worker, stops it, prints its process number and waits to be killed.
func parent() {
	started := make(chan *exec.Cmd, 1)
	_, err := worker.Open(worker.Options{Device: "cpu", Command: func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asWorker+"=serve")
		started <- cmd
		return cmd
	}})
	if err != nil {
		os.Exit(1)
	}
	pid := (<-started).Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString(strconv.Itoa(pid) + "\n")
	select {}
}

// TestDiesWithParent kills the parent of a stopped worker, which cannot notice that its pipe is
// closed.
func TestDiesWithParent(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asWorker+"="+asParent)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 32)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	for deadline := time.Now().Add(5 * time.Minute); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the worker outlives its parent")
		}
	}
}

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	s := state(pid)
	return s != 0 && s != 'Z' && s != 'X'
}

// state returns a process's state as Linux writes it, such as 'R' of one that runs and 'T' of one that is
// stopped; 0 if there is no such process.
func state(pid int) byte {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	if len(rest) == 0 {
		return 0
	}
	return rest[0]
}

// TestSignalsToTheGroup sends a worker the signals that shells send to a process group: it
// continues. After SIGKILL, which no process can ignore, the error says that it was killed.
func TestSignalsToTheGroup(t *testing.T) {
	var cmd *exec.Cmd
	d, err := worker.Open(worker.Options{Device: "cpu", Command: func() *exec.Cmd {
		cmd = exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asWorker+"=serve")
		return cmd
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Evict(); err != nil {
		t.Errorf("after signals that it should ignore: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := d.Evict(); !(is(err, device.ErrKilled) && !is(err, device.ErrFault)) {
		t.Errorf("a killed worker is reported as %v", err)
	}
	if err := d.Evict(); err != nil {
		t.Errorf("after it was killed: %v", err)
	}
}

// TestStopped: a worker that a signal has stopped is noticed within the limit, and the next one works.
func TestStopped(t *testing.T) {
	var cmd *exec.Cmd
	d, err := worker.Open(worker.Options{Device: "cpu", Command: func() *exec.Cmd {
		cmd = exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asWorker+"=serve")
		return cmd
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Signals arrive late on a busy processor. A worker that is not stopped yet answers the next call.
	for state(cmd.Process.Pid) != 'T' {
		time.Sleep(time.Millisecond)
	}
	if err := d.Provoke("crash", 123456789*time.Nanosecond); !errors.Is(err, device.ErrHang) || !strings.Contains(err.Error(), "no answer within 120ms, so the worker was killed") {
		t.Errorf("a stopped worker is reported as %v", err)
	}
	b := schedule.NewBuilder(1)
	b.Do(0, schedule.Map{Op: cell.Zero, Out: b.Matrix("m", 1, 3).All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(1); err != nil {
		t.Error(err)
	}
}
