package main

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
)

// TestTrainReplicas: training by replicas gives the losses of one device, and its records name
// the replicas. The run resumes with another number of them.
func TestTrainReplicas(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("replicas need Linux")
	}
	t.Chdir(t.TempDir())
	// With two threads the whole device has knobs that a replica of one has not.
	line := strings.Replace(little, "--threads 1", "--threads 2", 1) + " --impl persistent --every 10 --optimizer sgd:lr=0.5"
	rnnbench(t, line+" --iterations 20 --out alone").want(t, exit.Done, nil, nil)
	rnnbench(t, line+" --iterations 10 --replicas 2 --out shared").want(t, exit.Done, nil, nil)
	rnnbench(t, "train --resume shared --iterations 20 --threads 2 --replicas 3").want(t, exit.Done, nil, []string{"iteration 20"})
	_, alone, _, err := record.Read("alone")
	if err != nil {
		t.Fatal(err)
	}
	_, shared, _, err := record.Read("shared")
	if err != nil || len(shared) != len(alone) {
		t.Fatalf("%d records, not %d: %v", len(shared), len(alone), err)
	}
	for i, r := range shared {
		if got, want := r.Training.Loss, alone[i].Training.Loss; math.Abs(got-want) > 1e-4*want || r.Training.Replicas != 2+i {
			t.Errorf("record %d: by %d replicas the loss is %v, by one device %v", i+1, r.Training.Replicas, got, want)
		}
	}
	for flags, want := range map[string]string{
		"--replicas -1": "choose 1 to 64",
		"--replicas 65": "choose 1 to 64",
		"--replicas 5":  "cannot share a minibatch of 4",
		"--replicas x":  "not a number",
	} {
		rnnbench(t, little+" "+flags).want(t, exit.Usage, nil, []string{want})
	}
}
