package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"rnnbench/impl"
	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/tuner/config"
)

func TestVerify(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, "verify -H 9 -B 3 -T 4 --cell all --pass forward,train")
	n := len(cell.All()) * len(rnn.Passes()) * len(impl.Own())
	o.want(t, exit.Done, []string{"lstm-peephole train", "ok"}, []string{fmt.Sprintf("[%d/%d]", n, n), ", tolerance "})
	if exists(config.Dir) {
		t.Error("verify made a results folder")
	}
	o = rnnbench(t, "verify --impl naive -H 5 -B 1 -T 2 -q -o jsonl")
	var r record.Record
	if err := json.Unmarshal([]byte(strings.SplitN(o.out, "\n", 2)[0]), &r); err != nil || r.Stats != nil || r.Verify == nil || !r.Verify.OK {
		t.Errorf("%v: %s", err, o.out)
	}
}
