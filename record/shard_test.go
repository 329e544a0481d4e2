package record

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// shardManifest is the manifest of the second of three shards.
func shardManifest() Manifest {
	return Manifest{Scope: Scope{Shard: &Shard{Index: 2, Count: 3, Of: "run"}}}
}

// TestClaim: a shard's folder always has the same name, so its run continues. A second process is
// refused. A process that was killed early leaves nothing in the way.
func TestClaim(t *testing.T) {
	dir := t.TempDir()
	name := ShardFolder(*shardManifest().Scope.Shard)
	if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil || os.WriteFile(filepath.Join(dir, name, recordsFile), nil, 0o666) != nil {
		t.Fatal(err)
	}
	r, err := Claim(dir, name, shardManifest())
	if err != nil {
		t.Fatal(err)
	}
	if !Writing(r.Dir()) {
		t.Error("nobody writes the run")
	}
	busy := (*BusyError)(nil)
	if _, err := Claim(dir, name, shardManifest()); !errors.As(err, &busy) {
		t.Errorf("claimed twice: %v", err)
	}
	word := "2/3"
	r.On(Node{Name: "v1", Shard: &word})
	rec := sample(1)
	if err := errors.Join(r.Append(&rec), r.Finish(0)); err != nil {
		t.Fatal(err)
	}
	if Writing(r.Dir()) {
		t.Error("a finished run is being written")
	}
	again, err := Claim(dir, name, shardManifest())
	if err != nil || !again.Done(rec.Key()) || again.Manifest().Run != "run-2-of-3" {
		t.Fatalf("the run was not continued: %v", err)
	}
	if recs, err := again.Records(); err != nil || len(recs) != 1 || recs[0].Node == nil || recs[0].Node.Name != "v1" {
		t.Errorf("%+v, %v", recs, err)
	}
	if err := errors.Join(again.Finish(0), os.Remove(filepath.Join(again.Dir(), manifestFile))); err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(dir, name, shardManifest()); err == nil {
		t.Error("records without a manifest were written over")
	}
}
