package main

import (
	"bytes"
	"strings"
	"testing"

	"rnnbench/model"
	"rnnbench/results"
)

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
