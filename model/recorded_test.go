package model_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestMachinesAreAsRecorded: where runs of a GPU are recorded, its machine has the rates that they
// measured, not those of another machine or of a data sheet. Otherwise there is nothing to compare.
func TestMachinesAreAsRecorded(t *testing.T) {
	compared := 0
	for name, folder := range map[string]string{"h100": "nvidia-h100-80gb-hbm3", "h200": "nvidia-h200"} {
		found, err := filepath.Glob("../results/" + folder + "/*/manifest.json")
		if err != nil {
			t.Fatal(err)
		}
		if compared += len(found); len(found) == 0 {
			continue
		}
		var peak, bandwidth, half, graph []float64
		for _, path := range found {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var m struct {
				Devices []struct {
					Peak      float64           `json:"peak_flops_per_s"`
					Bandwidth float64           `json:"peak_bytes_per_s"`
					Facts     map[string]string `json:"facts"`
				} `json:"devices"`
			}
			if err := json.Unmarshal(text, &m); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			d := m.Devices[0]
			peak, bandwidth = append(peak, d.Peak), append(bandwidth, d.Bandwidth)
			half = append(half, quantity(t, d.Facts["bf16 products"], map[string]float64{"TFLOP/s": 1e12})/d.Peak)
			graph = append(graph, quantity(t, d.Facts["in a graph"], map[string]float64{"ns": 1e-9, "µs": 1e-6}))
		}
		m := load(t, name)
		for _, c := range []struct {
			what     string
			is       float64
			measured []float64
		}{{"flops", m.FLOPS, peak}, {"half", m.Half, half}, {"b of the last level", m.Levels[len(m.Levels)-1].B, bandwidth}, {"graph_launch", m.GPU.Graph, graph}} {
			slices.Sort(c.measured)
			if median := c.measured[len(c.measured)/2]; math.Abs(c.is/median-1) > 0.03 {
				t.Errorf("%s: %s is %.3g, but %.3g is the median of %d manifests: rnnbench doctor --machine writes the machine anew", name, c.what, c.is, median, len(found))
			}
		}
	}
	if compared == 0 {
		t.Skip("no runs of these GPUs are recorded")
	}
}

// quantity parses a number with a unit.
func quantity(t *testing.T, text string, units map[string]float64) float64 {
	t.Helper()
	number, unit, _ := strings.Cut(text, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || units[unit] == 0 {
		t.Fatalf("%q is no measured quantity: %v", text, err)
	}
	return v * units[unit]
}
