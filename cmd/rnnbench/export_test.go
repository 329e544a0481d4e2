package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"rnnbench/internal/exit"
)

func TestLookInside(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, "explain -H 8 -B 2 -T 3 --layers 2 --no-limits")
	o.want(t, exit.Done, []string{"naive · lstm", "cudnnstyle · lstm", "critical path", "streams: 2"}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3").want(t, exit.Done, []string{"lower bounds: "}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3 --impl naive -o dump").want(t, exit.Done, []string{"matrix x 6×8", "s0"}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3 --impl naive -o dot").want(t, exit.Done, []string{"digraph"}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3 --impl naive -S 4").want(t, exit.Done, []string{"declined: naive runs on one stream"}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3 --impl naive -S 4 -o dot").want(t, exit.Error, nil, []string{"naive runs on one stream"})
	for _, line := range []string{"export -H 8 -B 2 -T 3 -f a.npz", "export -H 8 -B 2 -T 3 --pass train --impl reference -o b.npz", "export --point H=4,B=1,T=2 --cell gru --impl cudnnstyle:fused=0 -f c.npz"} {
		rnnbench(t, line).want(t, exit.Done, nil, []string{"wrote "})
	}
	for _, file := range []string{"a.npz", "b.npz", "c.npz"} {
		if data, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(data, []byte("PK\x03\x04")) {
			t.Errorf("%s: %v", file, err)
		}
	}
	rnnbench(t, "export -H 512 -B 1 -T 3 -f d.npz --max-memory 1MiB").want(t, exit.Error, nil, []string{"needs"})
}

// TestExportInterrupted: an interrupted export leaves no partial file, and an existing file as it
// was.
func TestExportInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.npz", []byte("before"), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	if code := run(ctx, strings.Fields("export -H 8 -B 2 -T 3 -f a.npz"), strings.NewReader(""), &stdout, &stderr); code != exit.Interrupted || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d:\n%s", code, &stderr)
	}
	if data, err := os.ReadFile("a.npz"); err != nil || string(data) != "before" {
		t.Errorf("the file has %d bytes now, %v", len(data), err)
	}
	if all, err := os.ReadDir("."); err != nil || len(all) != 1 {
		t.Errorf("left: %v, %v", all, err)
	}
}
