//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"rnnbench/internal/exit"
)

// TestSlurmTrains submits a training to the Slurm of scripts/slurm-test and ends one of its jobs
// early. After a retry the merged run has the curves of an undivided run.
func TestSlurmTrains(t *testing.T) {
	if os.Getenv("SLURM_TEST") == "" {
		t.Skip("scripts/slurm-test starts a cluster and runs it")
	}
	t.Chdir(t.TempDir())
	t.Setenv(beProgram, "1")
	brief(t)
	grid := strings.Replace(trainGrid, "-H 8,12,16 -B 4", "-H 80,96,112 -B 16", 1) + " --iterations 150"
	rnnbench(t, grid+" --out whole").want(t, exit.Done, nil, nil)

	job := submitted(t, rnnbench(t, "submit slurm --shards 3 --name learn -- "+grid))
	waitFor(t, "records of the first shard", func() bool { p, ok := partsOf(t, "learn")[1]; return ok && len(p.Nodes) > 0 })
	slurm(t, "scancel", "--batch", "--signal=TERM", job+"_1") // it may have ended just now
	waitFor(t, "the end of all shards", func() bool {
		parts := partsOf(t, "learn")
		for i := 1; i <= 3; i++ {
			if parts[i].Exit == nil {
				return false
			}
		}
		return true
	})
	if !ended(t, "learn", 3) {
		waitFor(t, "the state of the ended jobs", func() bool {
			return strings.Contains(rnnbench(t, "submit status learn").errors, "1 failed")
		})
		rnnbench(t, "submit status learn --retry").want(t, exit.Done, nil, []string{": 1 shard\n"})
		waitFor(t, "the end of the retry", func() bool { return ended(t, "learn", 3) })
	}
	mergedBy(t, "learn", 6*15)
	sameCurves(t, "whole", "out/learn")
	rnnbench(t, "submit status learn").want(t, exit.Done, []string{fmt.Sprintf("%d of %d", 2, 2)}, []string{"3 shards: 3 done"})
}
