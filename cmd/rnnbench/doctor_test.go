package main

import (
	"bytes"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/model"
	"rnnbench/results"
)

// TestCrowded warns of more threads than processors, and of no others.
func TestCrowded(t *testing.T) {
	env := results.Environment{}
	env.CPU.Allowed = 2
	for _, c := range []struct {
		name    string
		workers int
		want    string
	}{{"cpu", 2, ""}, {"cpu", 3, "3 threads share 2 processors"}, {"cuda:0", 132, ""}} {
		b := &bench{info: device.Info{Name: c.name, Workers: c.workers}}
		got := b.crowded(env)
		if (c.want == "") != (got == nil) || got != nil && (!strings.Contains(got[0].What, c.want) || got[0].Remedy != "--threads 2, or leave it out") {
			t.Errorf("%s with %d workers: %v", c.name, c.workers, got)
		}
	}
}

// TestDoctorGPU says of a GPU nothing that was not measured on it.
func TestDoctorGPU(t *testing.T) {
	m, err := model.Find("NVIDIA H200")
	if err != nil || m == nil {
		t.Fatal(m, err)
	}
	d := diagnosis{Device: results.Device{Name: "NVIDIA H200", Facts: map[string]string{"workers": "132", "driver": "580"}}, machine: m}
	var b bytes.Buffer
	if err := d.print(&b); err != nil {
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
