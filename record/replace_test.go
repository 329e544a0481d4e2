package record

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// TestNewMergedRunIsWhole: a merge that ends early leaves no run without a manifest, and the next one
// removes what it left.
func TestNewMergedRunIsWhole(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, ".run.new") // of a process that was killed
	if err := os.Mkdir(left, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, controlFile), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	merge := func(seconds float64) error {
		return Replace(dir, "run", func(m *Merger) error {
			r := sample(1)
			r.Cost.Setup = seconds
			m.Manifest = Manifest{Schema: ManifestSchema, Records: Schema, Run: "run"}
			m.Controls, m.Records = []Record{sample(1)}, []Record{r}
			return nil
		})
	}
	if err := merge(math.NaN()); err == nil { // after the records of the control point were written
		t.Fatal("a record that cannot be written was merged")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("a merge that ended early left %v, %v", entries, err)
	}
	if err := merge(1); err != nil {
		t.Fatal(err)
	}
	if entries, err = os.ReadDir(dir); err != nil || len(entries) != 2 || !HasManifest(filepath.Join(dir, "run")) {
		t.Errorf("a merge made %v, %v; want the run and the file that names the latest", entries, err)
	}
}
