package main

import (
	"os"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
)

// TestConvolutions: networks with convolutions are verified, swept and trained, and refused with the reason.
func TestConvolutions(t *testing.T) {
	t.Chdir(t.TempDir())
	const point = " --impl persistent --cell gru -H 5 -B 2 -T 6 --input 9 --threads 1"
	rnnbench(t, "verify --conv 3x3x4/2+2x2x2"+point+" --pass train").want(t, exit.Done, []string{"conv=3x3x4/2+2x2x2", "ok"}, nil)
	rnnbench(t, "sweep --conv none,3x3x4 --effort quick --no-hostname --out out"+point).want(t, exit.Done, []string{"3x3x4"}, nil)
	rnnbench(t, "train --conv 3x3x4 --data speech:phonemes=1:hop=18:utterances=50:bands=9 --cell gru -H 8 -B 3 -T 26 --impl persistent --iterations 2 --threads 1 --no-hostname --held-out 0 --out trained").want(t, exit.Done, []string{"conv=3x3x4"}, nil)
	rnnbench(t, "verify --conv 3x3"+point).want(t, exit.Usage, nil, []string{"write CHANNELSxSTEPSxFEATURES"})
	rnnbench(t, "verify --conv 3x3x3 --onehot true"+point).want(t, exit.Usage, nil, []string{"read features, not symbols"})
	rnnbench(t, "export --conv 3x3x3 -f x.npz"+point).want(t, exit.Done, nil, []string{"wrote x.npz"})
}

// TestNetwork: sweep, train and verify take a network by its name or from a file, flags override it, and records
// say what was run.
func TestNetwork(t *testing.T) {
	t.Chdir(t.TempDir())
	file := "version = 1\n[axes]\ncell = 'gru'\nlayers = 2\nhidden = 9\nlookahead = 3\ndense = 5\noutput = 4\n"
	if err := os.WriteFile("own.toml", []byte(file), 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "sweep --network own.toml --hidden 7 -B 2 -T 4 --impl naive --effort quick --no-hostname --threads 1 --out out").want(t, exit.Done, nil, nil)
	_, recs, _, err := record.Read("out")
	if err != nil || len(recs) != 1 {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	if p := recs[0].Point; p.Cell != "gru" || p.Layers != 2 || p.Hidden != 7 || p.Lookahead != 3 || p.Dense != 5 || p.Output != 4 {
		t.Errorf("the record is of %+v", p)
	}
	rnnbench(t, "verify --network own.toml -B 2 -T 4 --impl persistent --pass train --threads 1").want(t, exit.Done, []string{"dense=5", "ok"}, nil)
	rnnbench(t, "explain --network speech:small -B 2 -T 4 --impl persistent --no-limits").want(t, exit.Done, nil, nil)
	rnnbench(t, "train --network speech:small -H 8 --data speech:phonemes=1:hop=18:utterances=50 -B 3 -T 26 --impl persistent --iterations 2 --threads 1 --no-hostname --held-out 0 --out trained").want(t, exit.Done, []string{"dense=64", "lookahead=5", "transcript=1"}, nil)
	rnnbench(t, "list networks").want(t, exit.Done, []string{"speech:small", "norm=batch"}, nil)
	rnnbench(t, "sweep --network speech:smal").want(t, exit.Usage, nil, []string{"did you mean speech:small?", "rnnbench list networks"})
	rnnbench(t, "sweep --network speech:small --preset quick").want(t, exit.Usage, nil, []string{"--network cannot"})
}
