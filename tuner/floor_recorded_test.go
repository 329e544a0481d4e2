package tuner_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/impl"
	"rnnbench/model"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// recordsOn reads the records of all runs on one GPU; there may be none.
func recordsOn(t *testing.T, device string) (all []record.Record) {
	t.Helper()
	paths, err := filepath.Glob("../results/" + device + "/*/records.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		recs, _, err := record.ReadRecords(file, path)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, recs...)
	}
	return all
}

// TestFloorsOfRecords: no record of a GPU took less than its floor, by any technique, apart from the error of the
// machine's measured rates. A short test draws some records.
func TestFloorsOfRecords(t *testing.T) {
	some, limit := 150, int64(1<<24)
	if !testing.Short() {
		some, limit = 2000, 1<<27
	}
	rng := rand.New(rand.NewPCG(62, 0))
	held := 0
	for name, device := range map[string]string{"h100": "nvidia-h100-80gb-hbm3", "h200": "nvidia-h200"} {
		m, err := model.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		all := recordsOn(t, device)
		reached := map[string]float64{}
		for _, i := range rng.Perm(len(all))[:min(some, len(all))] {
			r := &all[i]
			f, err := tuner.FloorOf(m, impl.All(), r, limit)
			if err != nil {
				t.Fatal(err)
			}
			if f == nil {
				continue
			}
			reached[r.Impl.Name] = max(reached[r.Impl.Name], f.Share)
			if f.Share > 1+*f.Error || f.Share <= 0 {
				t.Errorf("%s: %v by %s took %v s, which is %.3f of its floor by %s", device, r.Point, r.Impl.Label, r.Stats.Median, f.Share, f.Bound)
			}
		}
		t.Logf("%s: most of the floor, by technique: %v", device, reached)
		if held += len(reached); len(all) >= some && len(reached) < 3 {
			t.Errorf("%s: of %d records, only those of %v have a floor", device, some, reached)
		}
	}
	if held == 0 {
		t.Skip("no runs of these GPUs are recorded")
	}
}

// TestFloorGrows: a floor does not fall with more steps, units or sequences, on a processor and of launched products.
func TestFloorGrows(t *testing.T) {
	rng := rand.New(rand.NewPCG(63, 0))
	one := func(words ...string) string { return words[rng.IntN(len(words))] }
	for range 60 {
		machine, technique := one("xeon", "h200"), one("naive", "cudnnstyle", "persistent")
		m, err := model.Load(machine)
		if err != nil {
			t.Fatal(err)
		}
		precision := one("fp32", "bf16")
		switch {
		case m.GPU != nil:
			technique = "cudnnstyle"
		case technique == "naive": // it packs no weights
			precision = "fp32"
		}
		floor := func(p record.Point) float64 {
			p.Input = p.Hidden
			l, err := tuner.LayOut(open(t), impl.All(), p, grid.Spec{Name: technique, Label: technique, Knobs: knob.Params{}})
			if err != nil || l.Reason != "" {
				t.Fatal(err, l.Reason)
			}
			f, err := tuner.Floor(m, l, nil, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			return f.Seconds
		}
		p := record.Point{Cell: one("lstm", "gru", "rnn-tanh"), Pass: one("forward", "train"), Precision: precision,
			Hidden: 1 + rng.IntN(600), Batch: 1 + rng.IntN(40), Steps: 1 + rng.IntN(30), Layers: 1 + rng.IntN(3)}
		least := floor(p)
		for _, axis := range []string{"steps", "units", "sequences"} {
			q := p
			switch more := 1 + rng.IntN(200); axis {
			case "steps":
				q.Steps += more / 8
			case "units":
				q.Hidden += more
			default:
				q.Batch += more / 4
			}
			if f := floor(q); f < least*(1-1e-9) {
				t.Errorf("%s, %s: more %s, from %v to %v, take %v s at least instead of %v", machine, technique, axis, p, strings.TrimSpace(q.String()), f, least)
			}
		}
	}
}
