package rival_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/internal/python"
	"rnnbench/rival"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
)

// linear are the cells of rivals/linear_cells.py.
var linear = []string{"gilr", "sru", "qrnn", "mingru", "rg-lru"}

// scans are the packages of rivals/scans.py with the settings that compute in different ways.
var scans = map[string][]knob.Params{
	"accelerated-scan": {{"backend": 0}, {"backend": 1}},
	"fla":              {{"recurrent": 0}, {"recurrent": 1}},
	"torch-scan":       {{"time": 1}, {"time": 0}},
}

// scan is the command that runs rivals/scans.py with stand-ins for the packages: modules of testdata,
// which compute step by step. The packages need a GPU.
func scan(t *testing.T, name string) []string {
	if testing.Short() {
		t.Skip("loading PyTorch takes seconds")
	}
	p := python.Torch()
	if p == "" {
		t.Skip(python.NoTorch)
	}
	path := []string{"testdata/standins"}
	if exec.Command(p, "-c", "import torch._higher_order_ops.associative_scan").Run() != nil {
		path = append(path, "testdata/standins/newer")
	}
	for i := range path {
		path[i] = must(filepath.Abs(path[i]))
	}
	return []string{"env", "PYTHONPATH=" + strings.Join(path, string(os.PathListSeparator)), p, "../rivals/scans.py", name}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestScans compares rivals/scans.py with the reference, by each package. TestScansAlone has the other ways.
func TestScans(t *testing.T) {
	for name, ways := range scans {
		t.Run(name, func(t *testing.T) {
			hold(t, adapter{cells: linear, precisions: []rnn.Precision{rnn.FP32, rnn.BF16}, directions: []rnn.Direction{rnn.FromFirst}, knobs: ways[0], command: scan(t, name)})
		})
	}
}

// TestScansAlone: a pass of which a part is timed gives the same answer as a whole one.
func TestScansAlone(t *testing.T) {
	for name, ways := range scans {
		t.Run(name, func(t *testing.T) {
			r, err := rival.Open(rival.Options{Name: name, Command: scan(t, name), On: device.Info{Name: "cpu", Key: "cpu-test", Workers: 2}})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if slices.ContainsFunc(r.Varied(), func(k knob.Knob) bool { return k.Name == "alone" }) {
				t.Error("experiments would vary alone")
			}
			for _, c := range cell.All() {
				if !slices.Contains(linear, c.Name) {
					continue
				}
				for alone := range 5 {
					for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
						p := rnn.Problem{Cell: c, Pass: pass, Input: 3, Hidden: 7, Layers: 1, Batch: 2, Steps: 37}
						k := knob.Params{"alone": alone}
						maps.Copy(k, ways[(alone+1)%len(ways)])
						dev, err := compute(r, p, k)
						if declined := pass == rnn.Forward && (alone == 2 || alone == 4); declined != (err != nil) || err == nil && !dev.OK() {
							t.Errorf("%v: alone=%d: %v, %v", p, alone, dev, err)
						}
					}
				}
			}
		})
	}
}

// TestScansDecline: a package that is not there, and settings that it cannot take, are told.
func TestScansDecline(t *testing.T) {
	command := scan(t, "fla")
	on := device.Info{Name: "cpu", Key: "cpu-test", Workers: 2}
	if _, err := rival.Open(rival.Options{Name: "fla", Command: append([]string{"env", "PYTHONPATH="}, command[2:]...), On: on}); err == nil || !strings.Contains(err.Error(), "fla is not there") {
		t.Errorf("without the package: %v", err)
	}
	r, err := rival.Open(rival.Options{Name: "accelerated-scan", Command: scan(t, "accelerated-scan"), On: on})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := rnn.Problem{Cell: cell.GILR, Pass: rnn.Forward, Input: 1, Hidden: 1, Layers: 1, Batch: 1, Steps: 65537}
	for _, one := range []struct {
		knobs knob.Params
		why   string
	}{
		{knob.Params{"backend": 0}, "at most 65536 steps"},
		{knob.Params{"backend": 1, "half": 1}, "half=1 needs a precision of 16 bits"},
	} {
		if _, err := compute(r, p, one.knobs); err == nil || !strings.Contains(err.Error(), one.why) {
			t.Errorf("%v: %v, want %q", one.knobs, err, one.why)
		}
	}
}
