package main

import (
	"encoding/json"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/model"
	"rnnbench/record"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
)

// TestFloor: after doctor has saved the machine, records have a floor, which show and plot print. Before that, the floor is null.
func TestFloor(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, was := t.TempDir(), bench.MachinesFolder
	bench.MachinesFolder = func() string { return dir }
	defer func() { bench.MachinesFolder = was }()

	const sweep = "sweep --threads 1 -H 16,32 -B 1 -T 5 --impl persistent,naive" + quickly
	rnnbench(t, sweep+" --out before").want(t, exit.Done, nil, nil)
	if o := rnnbench(t, "show before"); strings.Contains(o.out, "floor") {
		t.Errorf("of an unknown machine, a floor is shown: %s", o.out)
	}
	rnnbench(t, "plot --y floor -f x.svg before").want(t, exit.Usage, nil, []string{"none of the 4 records has a value to draw: share of the floor"})

	m := config.Default()
	m.Threads = 1
	b, err := bench.OpenDevice(bench.Options{Config: config.Config{Devices: []string{"cpu"}, Measure: m}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b.Machine, err = model.Load("xeon"); err != nil {
		t.Fatal(err)
	}
	b.SaveMachine()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, sweep+" --out after").want(t, exit.Done, nil, nil)
	rnnbench(t, "show after").want(t, exit.Done, []string{"% of floor"}, nil)
	rnnbench(t, "plot --y floor -f x.svg after").want(t, exit.Done, nil, []string{"wrote x.svg"})
	for line := range strings.Lines(rnnbench(t, "show after -o jsonl").out) {
		var r record.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Floor == nil || r.Floor.Seconds <= 0 || r.Floor.Share <= 0 {
			t.Errorf("%s: the floor is %+v", r.Impl.Name, r.Floor)
		}
	}
	rnnbench(t, "explain --threads 1 --point H=32,B=1,T=5 --impl persistent --no-limits").want(t, exit.Done, []string{"floor: a run takes at least ", "floor: bound by "}, nil)
}
