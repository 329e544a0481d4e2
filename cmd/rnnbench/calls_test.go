package main

import (
	"os"
	"strings"
	"testing"

	"rnnbench/internal/exit"
)

// TestCalls: calls are measured, shown, drawn, reported, explained, compared and resumed.
func TestCalls(t *testing.T) {
	t.Chdir(t.TempDir())
	grid := "--calls 120 -H 8,16 -B 1 --impl naive,cudnnstyle,scan --threads 1"
	rnnbench(t, "sweep --dry-run "+grid).want(t, exit.Done, []string{"6 records = 2 hidden × 3 techniques; 2 of them skipped (cell)"}, nil)
	o := rnnbench(t, "sweep --effort quick "+grid)
	o.want(t, exit.Done, []string{"calls=120", "T=1", " p50 |", " p90 |", " p99 |"}, []string{"H=8 B=1 T=1 L=1 calls=120 naive"})
	rnnbench(t, "sweep --effort quick --resume out "+grid).want(t, exit.Done, []string{"calls=120"}, []string{"6 records"})
	rnnbench(t, "show -o csv").want(t, exit.Done, []string{"latency_p50_s,latency_p90_s,latency_p99_s"}, nil)
	rnnbench(t, "show -o jsonl").want(t, exit.Done, []string{`"latency":{"calls":120,`, `"method":"whole"`}, nil)
	rnnbench(t, "show --pivot hidden,impl --metric p99").want(t, exit.Done, []string{"99th percentile of calls"}, nil)
	rnnbench(t, "plot --y latency -f latency.svg").want(t, exit.Done, nil, []string{"wrote latency.svg"})
	svg, err := os.ReadFile("latency.svg")
	if err != nil || !strings.Contains(string(svg), "Latency of a call against hidden size") || !strings.Contains(string(svg), "Bars reach to the 99th percentile (p99)") {
		t.Errorf("the figure says neither what it draws nor what bars are: %v", err)
	}
	rnnbench(t, "report -f report.html").want(t, exit.Done, nil, []string{"wrote report.html"})
	page, err := os.ReadFile("report.html")
	if err != nil || !strings.Contains(string(page), "Latency of a call against hidden size") {
		t.Errorf("the report has no figure of latencies: %v", err)
	}
	rnnbench(t, "compare out out").want(t, exit.Done, []string{"calls=120"}, nil)
	rnnbench(t, "explain --point H=8,B=1,calls=120 --impl naive --threads 1").want(t, exit.Done, []string{"a call: the host writes 32.0 B, one run, the host reads 32.0 B; states of 64.0 B stay on the device"}, nil)
	rnnbench(t, "verify --calls 120 -H 8 -B 2 -T 3 --impl naive,cudnnstyle --threads 1").want(t, exit.Done, []string{"| ok ", "360", "whole"}, nil)
	rnnbench(t, "sweep --calls 120 --cell qrnn2 -H 8 -B 1 --impl naive --threads 1").want(t, exit.Error, []string{"qrnn2 reads 2 time steps of its input, but from call to call only states are kept"}, nil)
	rnnbench(t, "sweep --effort quick -H 8 -B 1 --impl naive --threads 1 --out whole").want(t, exit.Done, []string{"T=50"}, nil)
	rnnbench(t, "plot --y latency -f none.svg whole").want(t, exit.Usage, nil, []string{"none of the 1 record has a value to draw: latency of a call"})
}
