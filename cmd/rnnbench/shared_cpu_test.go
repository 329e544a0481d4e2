package main

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/bench"
)

// A busyMachine has two processors that other programs keep busy for another minute whenever it is
// asked, a quota that stops this program meanwhile, and two more runs of rnnbench.
type busyMachine struct {
	files fstest.MapFS
	asked int
}

func (m *busyMachine) Open(name string) (fs.File, error) {
	m.asked++
	switch name {
	case "proc/stat":
		return fstest.MapFS{name: {Data: fmt.Appendf(nil, "cpu0 %d 0 0 0 0 0 0 0\ncpu1 %[1]d 0 0 0 0 0 0 0\n", 6000*m.asked)}}.Open(name)
	case "sys/fs/cgroup/cpu.stat":
		return fstest.MapFS{name: {Data: fmt.Appendf(nil, "throttled_usec %d\n", 1000*m.asked)}}.Open(name)
	}
	return m.files.Open(name)
}

func newBusyMachine() *busyMachine {
	root := fstest.MapFS{"sys/fs/cgroup/cpu.max": {Data: []byte("50000 100000\n")}}
	process := func(pid, verb string) {
		root["proc/"+pid+"/stat"] = &fstest.MapFile{Data: []byte(pid + " (rnnbench) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0")}
		root["proc/"+pid+"/cmdline"] = &fstest.MapFile{Data: []byte("rnnbench\x00" + verb + "\x00")}
	}
	process("10", "sweep")
	process("47", "tune")
	process("48", "train")
	root["proc/self/stat"] = root["proc/10/stat"]
	return &busyMachine{files: root}
}

// TestSharedProcessors: commands that time runs name other runs of rnnbench before rivals start, and say
// what disturbs them. The table counts disturbed points, in a line for each kind.
func TestSharedProcessors(t *testing.T) {
	was := bench.SystemRoot
	t.Cleanup(func() { bench.SystemRoot = was })
	bench.SystemRoot = newBusyMachine()
	dir := t.TempDir()
	rnnbench(t, tiny+" -o table --out "+dir).want(t, exit.Done, []string{
		"The control group's quota (0.5 processors) stopped the program for up to 100 % of the time at 2 of 2 points, most at H=",
		"quota",
	}, []string{
		"2 other runs of rnnbench use this machine (the first is rnnbench tune, process 47): measure one after the other",
		"the control group's quota (0.5 processors) stops the program for 100 % of the time: raise the quota",
	})
	rnnbench(t, "show "+dir).want(t, exit.Done, []string{"The control group's quota (0.5 processors) stopped the program"}, nil)
	if o := rnnbench(t, "list cells"); strings.Contains(o.errors, "other runs") {
		t.Errorf("a command that times nothing warns: %s", o.errors)
	}

	bench.SystemRoot = was
	o := rnnbench(t, tiny+" --out "+t.TempDir())
	if strings.Contains(o.out, record.WarnQuota) || strings.Contains(o.errors, "quota") {
		t.Errorf("a quota on a machine that says nothing:\n%s%s", o.out, o.errors)
	}
}
