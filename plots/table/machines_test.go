package table

import (
	"strings"
	"testing"

	"rnnbench/record"
)

// TestMachines: what two machines measured stands together, as shares of each machine's limits; what one alone
// measured is counted.
func TestMachines(t *testing.T) {
	of := func(device string, hidden int, impl string, seconds, peak, copied, joules float64) record.Record {
		r := record.Record{
			Point: record.Point{Cell: "lstm", Pass: "forward", Hidden: hidden, Precision: "fp32"}, Impl: record.Impl{Name: impl, Label: impl}, Device: device, Status: record.OK,
			Mode: record.Mode{Graph: device == "large"}, Stats: &record.Stats{Median: seconds}, Work: record.Work{Flops: 1e9, Bytes: 1e8},
			Rate: &record.Rate{Flops: 1e9 / seconds},
		}
		r.Rate.SetCopies(copied)
		r.Rate.SetPeak(peak, record.PeakMultiplyAdds)
		if joules > 0 {
			r.Energy = &record.Energy{Joules: &joules}
		}
		return r
	}
	recs := []record.Record{
		of("small", 8, "naive", 10e-3, 1e12, 2e10, 0), of("large", 8, "naive", 1e-3, 1e13, 2e11, 0.5),
		of("small", 8, "scan", 20e-3, 1e12, 2e10, 0), of("small", 16, "naive", 20e-3, 1e12, 2e10, 0),
	}
	table, err := Machines(recs)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := table.Write(&b, "csv", Options{}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 3 || !strings.HasSuffix(lines[1], ",large,0.001,1e+12,10,50,2e+09") || !strings.HasSuffix(lines[2], ",small,0.01,1e+11,10,50,") {
		t.Errorf("%s", b.String())
	}
	if !strings.Contains(strings.Join(table.Notes, " "), "2 results are not listed") {
		t.Error(table.Notes)
	}
	if _, err := Machines(recs[2:]); err == nil || !strings.Contains(err.Error(), "different machines") {
		t.Errorf("of one machine: %v", err)
	}
}
