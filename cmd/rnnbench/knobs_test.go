package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/device/cpu/simd"
	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/bench"
)

// TestKnobsMeanTheSameEverywhere: a CPU knob is valid on every instruction set and with any
// number of workers. A value that the device does not offer is skipped, with that reason.
func TestKnobsMeanTheSameEverywhere(t *testing.T) {
	t.Chdir(t.TempDir())
	const grid = "sweep -H 8 -B 2 -T 5 --cell lstm,gilr --streams 1,2 --rounds 2 --max-rounds 2 --warmup 0s --min-time 0s --allow-failures"
	var specs []string
	for _, k := range cpu.Vocabulary() {
		for _, technique := range []string{"persistent", "scan", "cudnnstyle"} {
			for _, v := range []int{2, 400} {
				if k.Accepts(v) {
					specs = append(specs, fmt.Sprintf("%s:%s=%d", technique, k.Name, v))
				}
			}
		}
	}
	levels := []simd.Level{simd.Generic, simd.AVX2, simd.AVX512}
	levels = slices.DeleteFunc(levels, func(l simd.Level) bool { return l > simd.Detect().Base() })
	if testing.Short() { // the least and the most
		levels = slices.Compact([]simd.Level{levels[0], levels[len(levels)-1]})
	}
	for _, l := range levels {
		for _, threads := range []int{1, 2} {
			o := rnnbench(t, fmt.Sprintf("%s --dry-run -o csv --simd %v --threads %d --impl %s", grid, l, threads, strings.Join(specs, ",")))
			o.want(t, exit.Done, []string{record.ReasonKnob}, nil)
		}
	}
	rnnbench(t, grid+" --threads 1 --dry-run --impl persistent:bands=0:ahead=0,scan:scansplit=0").want(t, exit.Done, nil, nil)
	rnnbench(t, grid+" --impl persistent:bands=-1").want(t, exit.Usage, nil, []string{"persistent: knob bands cannot be -1: it takes 0 to 1024"})
	rnnbench(t, grid+" --impl persistent:bend=1").want(t, exit.Usage, nil, []string{`unknown knob "bend"`})
	o := rnnbench(t, grid+" --threads 1 --impl naive,naive:bands=2")
	o.want(t, exit.Done, nil, nil)
	_, recs, _, err := record.Read("out")
	if err != nil {
		t.Fatal(err)
	}
	skipped := 0
	for _, r := range recs {
		if r.ReasonCode != nil && *r.ReasonCode == record.ReasonKnob {
			if skipped++; r.Impl.Knobs["bands"] != 2 || !strings.Contains(*r.Reason, "bands=2: cpu does not use this knob at this point") {
				t.Errorf("%+v: %s", r.Impl, *r.Reason)
			}
		}
	}
	if skipped != 2 { // one of each cell, since naive has one stream
		t.Errorf("%d skipped for their knob", skipped)
	}
}

// TestKnobsBeforePeaks: a wrong knob is reported before the machine's peaks are measured.
func TestKnobsBeforePeaks(t *testing.T) {
	t.Chdir(t.TempDir())
	usual := bench.LimitsOf
	t.Cleanup(func() { bench.LimitsOf = usual })
	bench.LimitsOf = func(device.Meter, device.Info) (device.Limits, error) {
		t.Error("peaks were measured")
		return device.Limits{}, nil
	}
	for _, command := range []string{"sweep", "sweep --dry-run", "tune --no-wisdom", "train", "verify"} {
		for impl, want := range map[string]string{
			"naive:foo=1": `naive: unknown knob "foo": choose among workers`, "naive,cudnnstyle:fused=9": "knob fused cannot be 9", "scan:bands=-1": "knob bands cannot be -1",
		} {
			o := rnnbench(t, command+" --threads 2 --impl "+impl)
			o.want(t, exit.Usage, nil, []string{want, "hint: rnnbench list knobs"})
		}
	}
}

// TestSIMDVariable: the variable caps the instruction set of whole commands, and an unknown word
// is an error.
func TestSIMDVariable(t *testing.T) {
	t.Chdir(t.TempDir())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	under := func(level, line string) (string, int) {
		cmd := exec.Command(self, append([]string{asProgram}, strings.Fields(line)...)...)
		cmd.Env = append(os.Environ(), simd.Variable+"="+level)
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := under("generic", tiny); code != exit.Done {
		t.Fatalf("exit code %d: %s", code, out)
	}
	m, _, _, err := record.Read("out")
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Devices[0].Facts["simd"]; got != "generic" {
		t.Errorf("measured with %q", got)
	}
	for level, want := range map[string]string{"mmx": "RNNBENCH_SIMD=mmx: choose among generic, avx2, avx512, avx512bf16, amx"} {
		if out, code := under(level, tiny); code != exit.Usage || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d: %s", level, code, out)
		}
	}
	if simd.Detect() > simd.Generic {
		if out, code := under("generic", tiny+" --simd "+simd.Detect().String()); code == exit.Done || !strings.Contains(out, "RNNBENCH_SIMD=generic forbids") || !strings.Contains(out, "hint: unset RNNBENCH_SIMD") {
			t.Errorf("exit code %d: %s", code, out)
		}
	}
}
