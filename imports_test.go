package rnnbench_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers are the packages from the bottom up: each may import those of lower
// layers and of its own.
var layers = [][]string{
	{"rnn/axis", "rnn/cell", "rnn/equations", "rnn/knob", "rnn/ctc"},
	{"rnn/schedule", "rnn/graph", "cells"},
	{"rnn", "rnn/oracle", "rnn/torch", "device", "device/cpu", "device/devicetest", "device/worker", "device/cuda"},
	{"impl", "record", "model", "train/data", "rival", "modelfile"},
	{"tuner", "plots", "train", "cluster"},
	{"experiments", "layer"},
	{"report"},
	{"cmd", "capi"},
}

// forbidden are imports within a layer, or across, that would tie together what
// must not know each other.
var forbidden = [][2]string{ // importer, imported
	{"impl", "device"},     // techniques know no device
	{"impl", "rnn/oracle"}, // nor the right answer
	{"device", "impl"},     // devices know no technique
	{"device", "rnn"},      // nor the problem: they see schedules
	{"rnn", "device"},      // the problem knows no device
	{"plots", "tuner"},     // figures are drawn from records alone
	{"plots", "device"},    //
	{"plots", "rnn"},       //
	{"record", "device"},   // records know no hardware
	{"record", "rnn"},      //
	{"report", "tuner"},    // so are pages
	{"report", "device"},   //
	{"train/data", "device"},
	{"train/data", "rnn"},
	{"cluster", "tuner"}, // submissions know runs by their folders
	{"cluster", "rnn"},   //
	{"cluster", "device"},
	{"model", "device"}, // the model answers for machines that nobody has
	{"model", "record"}, //
	{"tuner/grid", "device"},
	{"tuner/config", "device"},
}

// suite is the tests that every technique passes on every device: of what is below
// impl, it alone imports devices and the right answer.
const suite = "impl/impltest"

// rooms are the packages of a directory from the bottom up: each may import those
// of earlier lines alone.
var rooms = map[string][][]string{
	"device/cpu": {
		{"device/cpu/topology", "device/cpu/simd/amx/program", "device/cpu/simd/fused/catalog"},
		{"device/cpu/simd/amx"},
		{"device/cpu/simd"},
		{"device/cpu/simd/fused", "device/cpu/gemm"},
		{"device/cpu/predict"},
		{"device/cpu"},
	},
	"device/cuda": {
		{"device/cuda/driver", "device/cuda/ints"},
		{"device/cuda/codegen"},
		{"device/cuda/launch", "device/cuda/image"},
		{"device/cuda/pointwise", "device/cuda/persistent/kernels"},
		{"device/cuda/gemm", "device/cuda/persistent", "device/cuda/scan"},
		{"device/cuda/persistent/barrier", "device/cuda/persistent/stack"},
		{"device/cuda/lower"},
		{"device/cuda", "device/cuda/emulator", "device/cuda/nvrtc", "device/cuda/nccl"},
		{"device/cuda/nvidia"},
	},
	"experiments": {
		{"experiments/pick", "experiments/show"},
		{"experiments/estimate"},
		{"experiments/study"},
		{"experiments/form"},
		{"experiments/appleyard", "experiments/danieli", "experiments/diamos", "experiments/hwang", "experiments/martin", "experiments/yardstick"},
		{"experiments"},
		{"experiments/session"},
	},
	"tuner": {
		{"tuner/search", "tuner/grid", "tuner/wisdom", "tuner/advise"},
		{"tuner/config"},
		{"tuner"},
		{"tuner/agenda", "tuner/regret", "tuner/filter", "tuner/probe", "tuner/network", "tuner/explain", "tuner/auto"},
		{"tuner/campaign"},
		{"tuner/progress"},
		{"tuner/bench"},
		{"tuner/job"},
	},
}

// against reports whether pkg imports imp, of the same directory, against the order
// of its rooms.
func against(pkg, imp string) bool {
	for dir, lines := range rooms {
		if within(pkg, dir) && within(imp, dir) {
			room := func(p string) int {
				return slices.IndexFunc(lines, func(line []string) bool { return slices.Contains(line, p) })
			}
			if room(pkg) < 0 || room(imp) < 0 || room(imp) >= room(pkg) {
				return true
			}
		}
	}
	return false
}

// within reports whether pkg is dir or below it. Of rnn that is the oracle alone: cell, knob and
// schedule are for everybody.
func within(pkg, dir string) bool {
	if dir == "rnn" {
		return pkg == dir || pkg == "rnn/oracle"
	}
	return pkg == dir || strings.HasPrefix(pkg, dir+"/")
}

// layer is the layer of pkg: that of the longest path that holds it.
func layer(pkg string) int {
	best, at := -1, -1
	for i, dirs := range layers {
		for _, dir := range dirs {
			if (pkg == dir || strings.HasPrefix(pkg, dir+"/")) && len(dir) > best {
				best, at = len(dir), i
			}
		}
	}
	return at
}

func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		pkg := strings.TrimPrefix(words[0], "rnnbench/")
		if pkg == "rnnbench" || strings.Contains(pkg, "internal") {
			continue
		}
		if layer(pkg) < 0 {
			t.Errorf("%s is in no layer: add it to layers", pkg)
		}
		for _, imp := range words[1:] {
			imp, ours := strings.CutPrefix(imp, "rnnbench/")
			if !ours || strings.Contains(imp, "internal") {
				continue
			}
			if layer(imp) > layer(pkg) {
				t.Errorf("%s imports %s, which is above it", pkg, imp)
			}
			if against(pkg, imp) {
				t.Errorf("%s imports %s, against the order of rooms", pkg, imp)
			}
			if i := slices.IndexFunc(forbidden, func(f [2]string) bool { return within(pkg, f[0]) && within(imp, f[1]) }); i >= 0 && !(pkg == suite && forbidden[i][0] == "impl") {
				t.Errorf("%s imports %s", pkg, imp)
			}
		}
	}
}
