package experiments_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/record"
	"rnnbench/tuner/agenda"
)

// shardsOf divides an agenda, and says which shard measures what: by point and label.
func shardsOf(t *testing.T, id string, q agenda.Agenda, n int, gpu bool) map[string]int {
	t.Helper()
	d, err := q.Divide(n, gpu)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	owner, networks := map[string]int{}, 0
	for i := 1; i <= n; i++ {
		part := d.Shard(record.Shard{Index: i, Count: n}, "run")
		networks += len(part.Networks())
		for _, p := range part.Own().Parts {
			for _, at := range p.Points {
				for _, s := range p.Specs {
					k := fmt.Sprintf("%v|%s|%t", at, s.Label, p.Training != nil)
					if owner[k] != 0 {
						t.Errorf("%s: shards %d and %d both measure %s", id, owner[k], i, k)
					}
					owner[k] = i
				}
			}
		}
	}
	if len(owner) != q.Records() || networks != len(q.Networks()) {
		t.Errorf("%s: shards measure %d of %d records and train %d of %d networks", id, len(owner), q.Records(), networks, len(q.Networks()))
	}
	return owner
}

// TestShards: four shards of any experiment measure each of its records once. What is compared at
// a point is measured by one shard. The merged records give the report and figures of a run that
// was never divided.
func TestShards(t *testing.T) {
	const n = 4
	for _, d := range []record.Device{{Key: "cpu-synthetic-2t", Name: "synthetic"}, {Key: "cuda-synthetic", Name: "synthetic"}} {
		d.Facts = map[string]string{"workers": "4", record.RivalFact + "pytorch": "2 graph=0,1"}
		on := study.TargetOf(d)
		for _, e := range experiments.All() {
			quick := e.Agenda(study.Quick, on)
			if why, _ := e.Declines(on); why != "" || quick.Records() == 0 {
				continue
			}
			shardsOf(t, e.ID, e.Agenda(study.Full, on), n, on.GPU)
			owner := shardsOf(t, e.ID, quick, n, on.GPU)
			whole := synthetic(e, on)
			at := map[record.Point]int{}
			var merged []record.Record
			for i := 1; i <= n; i++ {
				for _, r := range whole {
					k := owner[fmt.Sprintf("%v|%s|%t", r.Point, r.Impl.Label, r.Training != nil)]
					if place := r.Point.Place(); at[place] == 0 {
						at[place] = k
					} else if at[place] != k {
						t.Errorf("%s: shards %d and %d share %v", e.ID, k, at[place], place)
					}
					if k == i {
						merged = append(merged, r)
					}
				}
			}
			want, got := written(t, e, d, whole), written(t, e, d, merged)
			if len(got) != len(want) {
				t.Errorf("%s: merged shards give %d texts and figures, one run %d", e.ID, len(got), len(want))
			}
			for name, text := range want {
				if a, b := apart(got[name], text); a != b {
					t.Errorf("%s: %s: merged shards give\n%s\nand one run\n%s", e.ID, name, a, b)
				}
			}
		}
	}
}

// apart are the first lines in which two texts differ.
func apart(a, b string) (string, string) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i], y[i]
		}
	}
	return fmt.Sprint(len(x), " lines"), fmt.Sprint(len(y), " lines")
}

// written are the report and figures of records, by their names.
func written(t *testing.T, e study.Experiment, d record.Device, recs []record.Record) map[string]string {
	t.Helper()
	rep, err := e.On(d, recs)
	if err != nil {
		t.Errorf("%s: %v", e.ID, err)
		return nil
	}
	files := map[string]string{}
	for where, texts := range textsOf(rep) {
		files[where] = fmt.Sprintf("%q", texts)
	}
	for _, f := range rep.Figures {
		var b bytes.Buffer
		if err := plots.Write(&b, f.Figure, "svg"); err != nil {
			t.Errorf("%s: %s: %v", e.ID, f.Name, err)
		}
		files[f.Name] = b.String()
	}
	return files
}
