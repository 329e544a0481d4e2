package agenda

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/record"
)

// TestDivide divides a grid: every point is in one shard, with all its techniques and streams. Shards
// are even, and all measure the control point.
func TestDivide(t *testing.T) {
	r := request("8,16,24,32,40,48,56,64", "naive,cudnnstyle")
	r.Axes["steps"], r.Axes["streams"], r.Axes["batch"] = "1,5,10", "1,2", "1,4,16"
	p, err := New(r, target())
	if err != nil {
		t.Fatal(err)
	}
	const n = 7
	d, err := p.Divide(n, false)
	if err != nil {
		t.Fatal(err)
	}
	owner := map[record.Point]int{}
	records, controls := 0, 0
	for i := 1; i <= n; i++ {
		q := d.Shard(record.Shard{Index: i, Count: n}, "run")
		if q.Hash() != p.Hash() || q.Shard.Records != p.Records() || q.Scope().Shard == nil {
			t.Errorf("shard %d is of another plan: %+v", i, q.Scope())
		}
		for _, task := range q.Own().Tasks() {
			if o, ok := owner[task.Point.Place()]; ok && o != i {
				t.Errorf("%v is in shards %d and %d", task.Point, o, i)
			}
			owner[task.Point.Place()] = i
			records += len(task.Specs)
		}
		for _, task := range q.Control().Tasks() {
			if !q.Shard.Extra(task.Point) {
				t.Errorf("%v is no control point of shard %d", task.Point, i)
			}
			controls += len(task.Specs)
		}
	}
	if records != p.Records() || controls != (n-1)*4 {
		t.Errorf("%d of %d records, %d of controls", records, p.Records(), controls)
	}
	if least, most := slices.Min(d.Seconds), slices.Max(d.Seconds); most > 1.1*least {
		t.Errorf("shards take from %.2f to %.2f s", least, most)
	}
	for other, why := range map[string]string{
		"its plan was not divided": d.Shard(record.Shard{Index: 1, Count: n}, "run").Mismatch(record.Manifest{Scope: p.Scope()}, record.Device{}),
		"it is shard 2/7 of":       p.Mismatch(record.Manifest{Scope: d.Shard(record.Shard{Index: 2, Count: n}, "run").Scope()}, record.Device{}),
		"it is shard 2/7, not 3/7": d.Shard(record.Shard{Index: 3, Count: n}, "run").Mismatch(record.Manifest{Scope: d.Shard(record.Shard{Index: 2, Count: n}, "run").Scope()}, record.Device{}),
	} {
		if !strings.Contains(why, other) {
			t.Errorf("%q, want %q", why, other)
		}
	}
}

// TestDivideFew: shards without a point of their own still measure the control point.
func TestDivideFew(t *testing.T) {
	p, err := New(request("8,16", "naive"), target())
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Divide(4, true)
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for i := 1; i <= 4; i++ {
		q := d.Shard(record.Shard{Index: i, Count: 4}, "run")
		own += q.Own().Points()
		if q.Points() == 0 {
			t.Errorf("shard %d measures nothing", i)
		}
	}
	if own != 2 || !strings.HasPrefix(d.Share(record.Shard{Index: 4, Count: 4}), "shard 4/4: 0 of 2 points, ") {
		t.Errorf("%d points; %s", own, d.Share(record.Shard{Index: 4, Count: 4}))
	}
	if _, err := (Agenda{Summary: "nothing"}).Divide(2, false); err == nil {
		t.Error("a plan of nothing was divided")
	}
}

// TestDivideTraining divides networks by how long they are trained. Their numbers are those of the
// whole agenda, and every shard times the pass of the control point.
func TestDivideTraining(t *testing.T) {
	p, err := New(request("8,16,32,64,128", "naive,open"), target())
	if err != nil {
		t.Fatal(err)
	}
	p.Kind = "train copy sgd"
	undivided := p.Hash()
	p = p.Trained(record.TrainingPlan{Time: 60})
	if p.Hash() != undivided {
		t.Error("the limits change the plan")
	}
	d, err := p.Divide(3, false)
	if err != nil {
		t.Fatal(err)
	}
	whole := p.Networks()
	var numbers []int
	for i := 1; i <= 3; i++ {
		q := d.Shard(record.Shard{Index: i, Count: 3}, "run")
		networks := q.Until(record.TrainingPlan{Time: 90}).Networks()
		for _, n := range networks {
			numbers = append(numbers, n.Number)
			if w := whole[n.Number-1]; w.Point != n.Point || w.Spec.Label != n.Spec.Label || n.Training.Time != 90 {
				t.Errorf("network %d is %v, not %v", n.Number, n, w)
			}
		}
		s := q.Shard
		if !s.Trained || s.Tune || s.Networks != len(networks) || s.Networks > 4 || q.Control().Records() != 2 || q.Own().Records() != s.Networks || q.Sweeps().Records() != 2 {
			t.Errorf("shard %d: %+v", i, s)
		}
		r := record.Record{Point: s.Control}
		if !s.Compares(&r) {
			t.Errorf("shard %d times %v for itself", i, s.Control)
		}
		r.Training = &record.Training{}
		if s.Compares(&r) {
			t.Errorf("shard %d trains %v to compare nodes", i, s.Control)
		}
	}
	slices.Sort(numbers)
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(numbers, want) {
		t.Errorf("networks %v are trained", numbers)
	}
}

// TestDivideMixed divides an agenda that is partly swept and partly trained. A network stays with its
// pass, and the control point is a swept one.
func TestDivideMixed(t *testing.T) {
	p, err := New(request("8,16,32", "naive"), target())
	if err != nil {
		t.Fatal(err)
	}
	learnt, err := New(request("16,32,64", "naive"), target())
	if err != nil {
		t.Fatal(err)
	}
	p.Parts = append(p.Parts, learnt.Trained(record.TrainingPlan{Iterations: 100}).Parts...)
	d, err := p.Divide(3, false)
	if err != nil {
		t.Fatal(err)
	}
	swept, trained := map[record.Point]int{}, map[record.Point]int{}
	for i := 1; i <= 3; i++ {
		q := d.Shard(record.Shard{Index: i, Count: 3}, "run")
		if q.Shard.Trained || q.Shard.Control.Hidden == 64 {
			t.Errorf("%+v", q.Shard)
		}
		for _, task := range q.Own().Sweeps().Tasks() {
			swept[task.Point] = i
		}
		for _, n := range q.Networks() {
			trained[n.Point] = i
			if s := swept[n.Point]; s != i && n.Point.Hidden != 64 {
				t.Errorf("%v is swept by shard %d and trained by shard %d", n.Point, s, i)
			}
		}
		if i > 1 && q.Control().Records() != 1 {
			t.Errorf("shard %d measures %d control records", i, q.Control().Records())
		}
	}
	if len(swept) != 3 || len(trained) != 3 {
		t.Errorf("%d points are swept and %d trained", len(swept), len(trained))
	}
}

func TestShardText(t *testing.T) {
	for text, want := range map[string]string{
		"3/16": "", "1/1": "", "5/4": "must be from 1 to 4", "0/0": "number of shards must be from 1", "0/3": "must be from 1 to 3",
		"3": "is not a shard", "a/b": "is not a shard", "-1/4": "must be from 1 to 4", "1/9999999": "number of shards",
	} {
		s, err := ParseShard(text)
		if want == "" && (err != nil || s.String() != text) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v; want %q", text, s, err, want)
		}
	}
}
