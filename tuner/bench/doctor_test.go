package bench

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/model"
	"rnnbench/record"
)

// TestCrowded warns of more threads than processors, and of no others.
func TestCrowded(t *testing.T) {
	env := record.Environment{}
	env.CPU.Allowed = 2
	for _, c := range []struct {
		name    string
		workers int
		want    string
	}{{"cpu", 2, ""}, {"cpu", 3, "3 threads share 2 processors and spend most of their time waiting"}, {"cuda:0", 132, ""}} {
		b := &Hardware{Info: device.Info{Name: c.name, Workers: c.workers}}
		got := b.Crowded(env)
		if (c.want == "") != (got == nil) || got != nil && (!strings.Contains(got[0].What, c.want) || got[0].Remedy != "use --threads 2, or omit the flag") {
			t.Errorf("%s with %d workers: %v", c.name, c.workers, got)
		}
	}
}

// TestDoctorGPU: doctor prints only what was measured on the GPU.
func TestDoctorGPU(t *testing.T) {
	m, err := model.Find("NVIDIA H200")
	if err != nil || m == nil {
		t.Fatal(m, err)
	}
	d := Diagnosis{Device: record.Device{Name: "NVIDIA H200", Facts: map[string]string{"workers": "132", "driver": "580"}}, machine: m}
	var b bytes.Buffer
	if err := d.Print(&b, 0); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"132 multiprocessors", "rnnbench model h200"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	for _, no := range []string{"barrier", "exchange", "PB/s"} {
		if strings.Contains(text, no) {
			t.Errorf("%q in:\n%s", no, text)
		}
	}
}

// TestExchangeUnknown: an exchange too short to be distinguished from a barrier is called hidden
// by noise, not zero.
func TestExchangeUnknown(t *testing.T) {
	m := &model.Machine{Levels: []model.Level{{Name: "L3", P: 2, B: 1, C: 1e-7}}}
	for _, c := range []struct {
		rate float64
		want string
	}{{5e9, "exchange rate 5.00 GB/s"}, {0, "exchange rate hidden by noise"}} {
		m.Levels[0].X = c.rate
		var text string
		printHierarchy(func(name, format string, args ...any) { text += fmt.Sprintf(format, args...) + "\n" }, m)
		if !strings.Contains(text, c.want) || strings.Contains(text, " 0 B/s") {
			t.Errorf("%v: no %q in:\n%s", c.rate, c.want, text)
		}
	}
}

// TestDoctorTopology: doctor prints the topology on a line, and barriers of fewer workers if some
// were measured.
func TestDoctorTopology(t *testing.T) {
	m := &model.Machine{Levels: []model.Level{{Name: "L2", P: 1, B: 1}, {Name: "L3", P: 16, B: 1, C: 2e-6, X: 1e9}},
		Meetings: []model.Meeting{{Parts: 2, Seconds: 2e-7}, {Parts: 8, Seconds: 9e-7}, {Parts: 16, Seconds: 2e-6}}}
	d := Diagnosis{Device: record.Device{Name: "x", Facts: map[string]string{"workers": "16", "simd": "avx2", "topology": "16 cores, 2 clusters of 8 cores that share 32 MiB of L3"}}, machine: m}
	var b bytes.Buffer
	if err := d.Print(&b, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"topology     16 cores, 2 clusters of 8 cores", "barrier    2.00 µs for all workers", "200 ns for 2, 900 ns for 8\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
}

// TestDoctorFits: the output of doctor fits a terminal.
func TestDoctorFits(t *testing.T) {
	long := strings.Repeat("a long word ", 20)
	d := Diagnosis{
		Environment: record.Environment{Host: record.Host{System: long}}, Device: record.Device{Name: "cpu"}, Advice: []advice{{What: long, Remedy: long}},
	}
	var b bytes.Buffer
	if err := d.Print(&b, 80); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
