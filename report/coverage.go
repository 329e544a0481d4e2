package report

import (
	"fmt"
	"strings"

	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// A Recording is an experiment with its records on a CPU and on a GPU; nil: there are none.
type Recording struct {
	Experiment study.Experiment
	CPU, GPU   *Recorded
}

// Recorded is a run of an experiment, perhaps with a repetition on another day.
type Recorded struct {
	Reproduction
	Again []record.Record // of the repetition; nil: there is none
}

// Add adds a run. If there are several on CPUs, or several on GPUs, the one that started last counts, since
// the others are from earlier programs. Of runs of one commit, the more complete counts.
func (x *Recording) Add(r *Recorded) {
	place := &x.CPU
	if d := r.Set.Manifest.Devices; len(d) > 0 && record.OnGPU(d[0].Key) {
		place = &x.GPU
	}
	if *place == nil || r.preferred(*place) {
		*place = r
	}
}

// preferred reports whether r counts instead of other.
func (r *Recorded) preferred(other *Recorded) bool {
	a, b := r.Set.Manifest, other.Set.Manifest
	if commit := a.Environment.Tool.Revision; commit != "" && commit == b.Environment.Tool.Revision && r.complete() != other.complete() {
		return r.complete() > other.complete()
	}
	return a.Started.After(b.Started)
}

// complete is the share of the planned records that r has, at most 1.
func (r *Recorded) complete() float64 {
	return min(1, float64(r.made())/float64(max(1, r.Set.Manifest.Scope.Records)))
}

// Coverage is the table of what is recorded for each experiment, and how.
func Coverage(list []Recording) *table.Table {
	t := &table.Table{
		Columns: []table.Column{
			{Name: "Experiment", Key: "experiment"}, {Name: "Present", Key: "present"}, {Name: "Unlike the paper", Key: "unlike"}, {Name: "CPU", Key: "cpu"}, {Name: "GPU", Key: "gpu"},
			{Name: "Rounds", Key: "rounds"}, {Name: "Throttled", Key: "throttled"}, {Name: "Runs differ by", Key: "repeat"}, {Name: "Commit", Key: "commit"},
		},
	}
	newest := NewestCommit(list)
	for _, x := range list {
		present := "no"
		if x.CPU != nil || x.GPU != nil {
			present = "yes"
		}
		unlike := x.Experiment.Unlike
		switch {
		case unlike == "" && ofPaper(x.Experiment):
			unlike = "nothing"
		case unlike == "":
			unlike = "no paper"
		}
		both := func(of func(*Recorded) string) table.Cell {
			var words []string
			for _, r := range []*Recorded{x.CPU, x.GPU} {
				if r == nil {
					continue
				}
				if s := of(r); s != "" {
					words = append(words, s)
				}
			}
			return table.Text(strings.Join(words, "; "))
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(x.Experiment.ID), table.Text(present), table.Text(unlike), table.Text(x.CPU.state()), table.Text(x.GPU.state()),
			both(func(r *Recorded) string { return r.quality().Rounds() }), both((*Recorded).throttled), both((*Recorded).repeat), both(func(r *Recorded) string { return commit(r.Reproduction, newest) })})
	}
	return t
}

// ofPaper reports whether the experiment is from a paper.
func ofPaper(e study.Experiment) bool {
	return !strings.HasPrefix(e.Source, "rnnbench") && !strings.HasPrefix(e.Source, "DeepBench")
}

// state says when and where r was measured and how much of it. It counts wrong answers and failures.
func (r *Recorded) state() string {
	if r == nil {
		return "–"
	}
	m := r.Set.Manifest
	words := m.Started.Format("2006-01-02")
	if len(m.Devices) > 0 {
		words += " on " + strings.TrimPrefix(m.Devices[0].Key, "cuda-")
	}
	switch {
	case m.Scope.Records == 0:
		words += ", computed"
	case r.Report != nil && r.Report.Reduced:
		words += ", reduced size"
	}
	if m.Merged != nil {
		words += ", in " + quantity.Plural(m.Merged.Count, "shard")
	}
	if n := r.made(); n < m.Scope.Records {
		words += fmt.Sprintf(", %d of %d planned", n, m.Scope.Records)
	}
	wrong, failed := 0, 0
	for _, one := range quantity.Latest(r.Set.Records) {
		switch {
		case one.Status.Wrong():
			wrong++
		case one.Status.Broken():
			failed++
		}
	}
	if wrong > 0 {
		words += ", " + quantity.Plural(wrong, "wrong answer")
	}
	if failed > 0 {
		words += fmt.Sprintf(", %d failed", failed)
	}
	return words
}

// made counts the points and techniques that have a record. Some have several, such as each training,
// which must not stand for others that have none.
func (r *Recorded) made() int {
	type part struct {
		point record.Point
		label string
	}
	made := map[part]bool{}
	for _, one := range r.Set.Records {
		made[part{one.Point, one.Impl.Label}] = true
	}
	return len(made)
}

func (r *Recorded) quality() study.Quality { return study.QualityOf(r.Set.Records) }

// throttled is the share of records during which the clock was throttled; "": none.
func (r *Recorded) throttled() string {
	q := r.quality()
	if q.Throttled == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*float64(q.Throttled)/float64(q.Records))
}

// repeat says how much the two runs differ.
func (r *Recorded) repeat() string { return study.RepeatOf(r.Set.Records, r.Again).String() }

// NewestCommit is the commit of the record that was begun last, of those that name one; "": none does.
func NewestCommit(list []Recording) string {
	var last record.Manifest
	for _, x := range list {
		for _, r := range []*Recorded{x.CPU, x.GPU} {
			if r == nil {
				continue
			}
			if m := r.Set.Manifest; m.Environment.Tool.Revision != "" && m.Started.After(last.Started) {
				last = m
			}
		}
	}
	return last.Environment.Tool.Revision
}

// EarlierProgram reports whether a record is of another commit than the newest, or names none.
func EarlierProgram(r Reproduction, newest string) bool {
	commit := r.Set.Manifest.Environment.Tool.Revision
	return commit == "" || commit != newest
}

// commit names the program's commit, and says if it is an earlier one than the newest.
func commit(r Reproduction, newest string) string {
	const earlier = "earlier program"
	t := r.Set.Manifest.Environment.Tool
	if t.Revision == "" {
		return earlier
	}
	s := t.Revision[:min(len(t.Revision), 10)]
	if t.Dirty != nil && *t.Dirty {
		s += " and changes"
	}
	if EarlierProgram(r, newest) {
		return earlier + " " + s
	}
	return s
}
