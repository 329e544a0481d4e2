package cuda_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/emulator"
)

// Every .cu file opens by itself. Its first lines include a sample of what Go puts ahead of it: a
// configuration and a cell. Its last lines include a sample of what Go puts behind it: the entry
// that instantiates its templates. The samples come from real kernels.

// kernelFiles returns the .cu files of all folders, by their paths, without the lines that include
// samples.
func kernelFiles(t *testing.T) map[string]string {
	all := map[string]string{}
	for _, path := range below(t, ".cu") {
		if filepath.Dir(path) == "codegen" { // they begin every kernel
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[path] = codegen.Body(string(data))
	}
	return all
}

// below returns the files of rooms, and of rooms in them, that end so.
func below(t *testing.T, end string) (all []string) {
	for _, pattern := range []string{"*/*" + end, "*/*/*" + end} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, paths...)
	}
	all = slices.DeleteFunc(all, func(path string) bool { return filepath.Base(filepath.Dir(path)) == "sample" })
	if len(all) == 0 {
		t.Fatal("no files end in ", end)
	}
	return all
}

// sampleOf is the path of the sample that goes ahead of a .cu file, and entryOf of the one that
// goes behind it.
func sampleOf(path string) string { return besides(path, ".cuh") }
func entryOf(path string) string  { return besides(path, "_entry.cuh") }

func besides(path, end string) string {
	return filepath.Join(filepath.Dir(path), "sample", strings.TrimSuffix(filepath.Base(path), ".cu")+end)
}

// opened returns a .cu file with the lines that include its samples.
func opened(path, body string, entry bool) string {
	name := strings.TrimSuffix(filepath.Base(path), ".cu")
	word := "SAMPLE_" + strings.ToUpper(name)
	head, tail := "", ""
	if entry {
		head = "#define " + word + "\n"
		tail = fmt.Sprintf("#ifdef %s\n#include \"sample/%s_entry.cuh\"\n#endif\n", word, name)
	}
	return fmt.Sprintf("#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it\n%s#include \"sample/%s.cuh\"\n#endif\n%s%s", head, name, body, tail)
}

// fromSample spells the line by which the samples of the file at path include another.
func fromSample(path, other string) string {
	to, err := filepath.Rel(filepath.Dir(sampleOf(path)), other)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("#include %q\n", filepath.ToSlash(to))
}

// A fileSample is what Go puts ahead of a file and behind it in one kernel.
type fileSample struct{ of, before, after string }

// sampleIn returns the sample for a file, from the first kernel that has it. The sample includes
// other files by their paths.
func sampleIn(kernels []text, path, body string, others map[string]string) (fileSample, bool) {
	include := func(s string) string {
		for other, text := range others {
			s = strings.Replace(s, text, fromSample(path, other), 1)
		}
		return s
	}
	for _, k := range kernels {
		if before, after, ok := strings.Cut(strings.TrimPrefix(k.body, codegen.Common()), body); ok {
			return fileSample{of: k.of, before: include(before), after: include(after)}, true
		}
	}
	return fileSample{}, false
}

// limitTexts returns the kernels that measure a GPU, which no schedule has.
func limitTexts(t *testing.T) (all []text) {
	driver, err := emulator.New(8, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer driver.Close()
	r := &recorder{Driver: driver, properties: h200()}
	d := cuda.New(r, r, "")
	if _, err := d.Limits(); err != nil {
		t.Fatal(err)
	}
	for _, mishap := range []string{"spin", "fault"} {
		if err := d.Provoke(mishap); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range r.kernels {
		all = append(all, text{of: "limits and mishaps", body: k})
	}
	return append(all, hostedTexts(t)...)
}

// hostedTexts returns the kernels that move rows for a host program.
func hostedTexts(t *testing.T) (all []text) {
	driver, err := emulator.New(8, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer driver.Close()
	r := &recorder{Driver: driver, properties: h200()}
	s, x, _, _ := pausing(t)
	p, err := cuda.New(r, r, "").Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.(device.Hosted).Place(x.All(), nil); err != nil {
		t.Fatal(err)
	}
	if err := p.(device.Hosted).Do(device.Work{}, 0); err != nil {
		t.Fatal(err)
	}
	return []text{{of: "moves for a host program", body: r.kernels[len(r.kernels)-1]}}
}

// TestSamples holds each sample to what Go puts ahead of the file in the first kernel of the corpus
// that has it.
func TestSamples(t *testing.T) {
	files := kernelFiles(t)
	kernels := append(compileAll(t).kernels, limitTexts(t)...)
	included := maps.Clone(files) // files that a kernel has ahead of its own file
	for _, path := range below(t, ".cuh") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		included[path] = string(data)
	}
	for path, body := range files {
		sample, ok := sampleIn(kernels, path, body, included)
		if !ok {
			t.Errorf("no kernel has %s", path)
			continue
		}
		entry := strings.TrimSpace(sample.after) != ""
		want := map[string]string{
			sampleOf(path): fmt.Sprintf("// What Go puts ahead of %s for one kernel. TestSamples writes it with -update, of:\n// %s\n#define CONFIGURED\n%s%s%s",
				filepath.Base(path), sample.of, fromSample(path, "codegen/intrinsics.cu"), fromSample(path, "codegen/common.cu"), sample.before),
			path: opened(path, body, entry),
		}
		if entry {
			want[entryOf(path)] = fmt.Sprintf("// What Go puts behind %s for the kernel of sample/%s.\n%s", filepath.Base(path), filepath.Base(sampleOf(path)), sample.after)
		}
		for file, want := range want {
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(want), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != want {
				t.Errorf("%s is not as it should be, %v: run TestSamples with -update", file, err)
			}
		}
	}
}

var includes = regexp.MustCompile(`(?m)^#include "(.*)"\n`)

// expanded returns a file with its includes in place, without those that the compiler puts ahead of
// all kernels.
func expanded(t *testing.T, path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if !strings.HasSuffix(path, ".cuh") { // a sample, which is not opened by itself
		if strings.Contains(path, "/sample/") {
			text = codegen.Body(text)
		}
	}
	return includes.ReplaceAllStringFunc(text, func(line string) string {
		to := includes.FindStringSubmatch(line)[1]
		if strings.HasSuffix(to, "intrinsics.cu") {
			return ""
		}
		at := filepath.Join(filepath.Dir(path), to)
		if strings.HasSuffix(to, ".cu") {
			data, err := os.ReadFile(at)
			if err != nil {
				t.Fatal(err)
			}
			return codegen.Body(string(data))
		}
		return expanded(t, at)
	})
}

// TestSamplesCompile compiles each file as it opens, with a kernel that instantiates its templates,
// for the oldest supported GPU and for Hopper.
func TestSamplesCompile(t *testing.T) {
	old, hopper := compilerFor(t, 80), hopper(t)
	for path := range kernelFiles(t) {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			text := expanded(t, path)
			if !strings.Contains(text, "__global__") {
				t.Error("it has no kernel: templates are not compiled")
			}
			if _, err := hopper.Compile(filepath.Base(path), text); err != nil {
				t.Errorf("for Hopper: %v", err)
			}
			if _, err := old.Compile(filepath.Base(path), text); err != nil {
				t.Errorf("for compute capability 8.0: %v", err)
			}
		})
	}
}
