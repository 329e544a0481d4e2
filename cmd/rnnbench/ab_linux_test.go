package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"rnnbench/record"
)

// TestTurnsAreKilled: if compare --ab is killed, the program that it runs ends too.
func TestTurnsAreKilled(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(beProgram, "1")
	const long = " -- sweep -H 4 -B 1 -T 2 --impl naive --warmup 10m --point-timeout 1h"
	child, said := starts(t, "compare --ab old="+os.Args[0]+" "+os.Args[0]+long, "")
	eventually := func(what string, is func() bool) {
		t.Helper()
		for start := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
			if time.Since(start) > 5*time.Minute {
				t.Fatalf("%s\n%s", what, said)
			}
		}
	}
	run := ""
	eventually("no program runs", func() bool {
		found, err := filepath.Glob("out/ab-*/*/*/manifest.json")
		if err != nil || len(found) == 0 {
			return false
		}
		run = filepath.Dir(found[0])
		return record.Writing(run)
	})
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	eventually("the program still writes its run", func() bool { return !record.Writing(run) })
}
