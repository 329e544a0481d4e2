package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
)

// breakRecords gives each record of a run the status and reason that change returns. It returns
// the keys of all records that are then not ok.
func breakRecords(t *testing.T, dir string, change func(r *record.Record) (record.Status, string)) map[string]bool {
	t.Helper()
	m, recs, _, err := record.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	broken := map[string]bool{}
	var lines bytes.Buffer
	for _, r := range recs {
		if status, code := change(&r); status != record.OK {
			why := "changed by the test"
			r.Status, r.ReasonCode, r.Reason, r.Samples, r.Stats, r.Rate, r.Verify = status, &code, &why, nil, nil, nil, nil
			broken[r.Key()] = true
		}
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	if err := os.WriteFile(filepath.Join("out", m.Run, "records.jsonl"), lines.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return broken
}

// wantResults fails unless a run has a result for every record except those in without.
func wantResults(t *testing.T, dir string, without map[string]bool) {
	t.Helper()
	_, recs, _, err := record.Read(dir)
	if err != nil || len(recs) == 0 {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	for i := range recs {
		if r := &recs[i]; (r.Status != record.OK) != without[r.Key()] {
			t.Errorf("%s is %s", r.Key(), r.Status)
		}
	}
}

// TestRetryFailed: --resume alone keeps records that failed, timed out or were wrong. With
// --retry-failed, it measures these again and keeps declined ones.
func TestRetryFailed(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, "sweep --retry-failed").want(t, exit.Usage, nil, []string{"--retry-failed needs --resume RUN"})
	rnnbench(t, "tune --retry-failed").want(t, exit.Usage, nil, []string{"--retry-failed needs --resume RUN"})
	rnnbench(t, strings.Replace(tiny, "-H 8,16", "-H 8,12,16", 1)).want(t, exit.Done, nil, []string{"6 records"})
	endings := []struct {
		status record.Status
		code   string
	}{
		{record.Failed, record.ReasonError}, {record.Timeout, record.ReasonHang}, {record.Incorrect, record.ReasonMismatch},
		{record.Skipped, record.ReasonShape}, {record.OK, ""}, {record.OK, ""},
	}
	n := -1
	broken := breakRecords(t, "out", func(r *record.Record) (record.Status, string) {
		n++
		return endings[n].status, endings[n].code
	})
	if n != 5 || len(broken) != 4 {
		t.Fatalf("%d records, %d broken", n+1, len(broken))
	}
	rnnbench(t, "sweep --resume out --allow-failures").want(t, exit.Done, nil, nil)
	wantResults(t, "out", broken)

	_, recs, _, err := record.Read("out")
	if err != nil {
		t.Fatal(err)
	}
	declined := map[string]bool{}
	for i := range recs {
		if recs[i].Status == record.Skipped {
			declined[recs[i].Key()] = true
		}
	}
	rnnbench(t, "sweep --resume out --retry-failed").want(t, exit.Done, nil, nil)
	wantResults(t, "out", declined)
}

// TestRetryFailedTune: a tune keeps a technique that failed, and tries it again with
// --retry-failed.
func TestRetryFailedTune(t *testing.T) {
	t.Chdir(t.TempDir())
	const line = "tune -H 8 -B 2 -T 3 --depth 0 --impl naive,cudnnstyle --wisdom w.toml --max-rounds 3 --min-time 0s --min-iters 1"
	rnnbench(t, line).want(t, exit.Done, nil, nil)
	broken := breakRecords(t, "out", func(r *record.Record) (record.Status, string) {
		if r.Impl.Name == "naive" {
			return record.Failed, record.ReasonError
		}
		return record.OK, ""
	})
	if len(broken) != 1 {
		t.Fatalf("%d records of naive", len(broken))
	}
	rnnbench(t, line+" --resume out --allow-failures").want(t, exit.Done, nil, nil)
	wantResults(t, "out", broken)
	rnnbench(t, line+" --resume out --retry-failed").want(t, exit.Done, nil, nil)
	wantResults(t, "out", nil)
}
