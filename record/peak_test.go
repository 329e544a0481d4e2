package record

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestOldPeaks reads records that have the peak of fp32 whatever their precision. GPU records get the
// peak of their own precision, if the manifest has it.
func TestOldPeaks(t *testing.T) {
	dir := t.TempDir()
	const gpu, cpu = "cuda-h200-132sm", "cpu-xeon-2t"
	want := map[string]float64{"fp32": 60e12, "tf32": 415e12, "bf16": 787e12, "fp16": 0}
	var lines bytes.Buffer
	for _, key := range []string{gpu, cpu} {
		for precision := range want {
			r := sample(8)
			r.Schema, r.Device, r.Point.Precision, r.Rate.Flops = Schema, key, precision, 6e12
			r.Rate.SetPeak(60e12, PeakMultiplyAdds)
			data, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			lines.Write(append(data, '\n'))
		}
	}
	file := filepath.Join(dir, recordsFile)
	if err := os.WriteFile(file, lines.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	checkPeaks := func(want map[string]float64) {
		t.Helper()
		_, recs, _, err := Read(dir)
		if err != nil || len(recs) != 8 {
			t.Fatalf("%d records, %v", len(recs), err)
		}
		for i := range recs {
			r := &recs[i]
			peak := want[r.Point.Precision]
			if r.Device == cpu {
				peak = 60e12 // a processor computes everything in fp32
			}
			if got := r.PeakFLOPS(); got != peak {
				t.Errorf("%s on %s: the peak is %g, want %g", r.Point.Precision, r.Device, got, peak)
			}
			if (r.Rate.Percent == nil) != (peak == 0) || peak > 0 && *r.Rate.Percent != 100*6e12/peak {
				t.Errorf("%s on %s: %v %% of %g", r.Point.Precision, r.Device, r.Rate.Percent, peak)
			}
		}
	}
	checkPeaks(map[string]float64{"fp32": 60e12})
	m := Manifest{Schema: ManifestSchema, Records: Schema, Devices: []Device{{Key: gpu, Facts: map[string]string{
		"bf16 products": "787 TFLOP/s", "tf32 products": "415 TFLOP/s", "fp32 products": "51.1 TFLOP/s", "fp16 products": "many",
	}}}}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, manifestFile), data, 0o666); err != nil {
		t.Fatal(err)
	}
	checkPeaks(want)
}
