package worker_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/worker"
)

// flood writes without end: instead of a greeting, after one, or as an answer with a length of a
// gigabyte.
func flood(where string) {
	const greeting = "rnnbench worker 2\n"
	junk := bytes.Repeat([]byte{'x'}, 1<<16)
	if where != "line" {
		os.Stdout.WriteString(greeting)
	}
	if where == "answer" { // gob writes a length as its number of bytes, negated, and then these bytes
		length := binary.BigEndian.AppendUint32(nil, 1<<30-1)
		os.Stdout.Write(append([]byte{0xfc}, length...))
	}
	for {
		if _, err := os.Stdout.Write(junk); err != nil {
			os.Exit(1)
		}
	}
}

// TestFloodsAreBounded: whatever a process writes, the parent reads little of it and returns a
// short error.
func TestFloodsAreBounded(t *testing.T) {
	for _, where := range []string{"line", "greeting", "answer"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := worker.Open(worker.Options{Device: "cpu", Start: time.Minute, Command: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), asWorker+"="+where)
			return cmd
		}})
		runtime.ReadMemStats(&after)
		if err == nil || !is(err, device.ErrStart) || strings.Contains(err.Error(), "no answer within") {
			t.Errorf("%s: %v", where, err)
		} else if n := len(err.Error()); n > 1<<13 {
			t.Errorf("%s: the error has %d bytes", where, n)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%s: the parent took %d MiB", where, took>>20)
		}
	}
}

// TestSilentStart: for a process that never greets, the time limit is that of a start, not that of
// a call.
func TestSilentStart(t *testing.T) {
	_, err := worker.Open(worker.Options{Device: "cpu", Timeout: time.Hour, Start: 50 * time.Millisecond, Command: func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asWorker+"=silent")
		return cmd
	}})
	if !is(err, device.ErrStart) || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("a silent worker: %v", err)
	}
}
