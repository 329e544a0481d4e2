package cluster

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/record/merge"
)

// A Place is a shard of a group.
type Place struct {
	Group string
	Shard int
}

// A Phase is the progress of a job.
type Phase string

// Phases of jobs, and of shards. A shard may also be Missing: it has not begun, and none of its
// jobs waits or runs.
const (
	Unknown Phase = ""
	Queued  Phase = "queued"
	Running Phase = "running"
	Done    Phase = "done"
	Failed  Phase = "failed"
	Missing Phase = "missing"
)

// A State is what a scheduler reports about the job of a shard.
type State struct {
	Phase Phase
	Job   string
	Node  string
	Why   string // in the scheduler's words
}

// A Shard is the progress of a shard, by its folder and by the scheduler.
type Shard struct {
	Place
	Count   int // of the group
	Phase   Phase
	Done    int // records; of a tune, points with a winner
	Planned int // 0: unknown, since the shard has not begun
	Broken  int // records that did not succeed
	Job     string
	Nodes   []string // that measured it, or will
	Why     string
}

// Status returns the progress of the shards of the submission in dir. states is what the scheduler
// reports; nil: it cannot be asked.
func (s *Submission) Status(dir string, states map[Place]State) ([]Shard, error) {
	var list []Shard
	for _, g := range s.Groups {
		parts, err := merge.Parts(filepath.Join(dir, g.Name))
		if err != nil {
			return nil, err
		}
		for i := 1; i <= g.Shards; i++ {
			at := Place{g.Name, i}
			x := Shard{Place: at, Count: g.Shards}
			state := states[at]
			x.Job = state.Job
			if state.Node != "" {
				x.Nodes = []string{state.Node}
			}
			if p, ok := parts[record.Shard{Index: i, Count: g.Shards}]; ok {
				x.Done, x.Planned, x.Broken = p.Done, p.Planned, p.Broken
				if len(p.Nodes) > 0 {
					x.Nodes = p.Nodes
				}
				x.began(p, state)
			} else {
				x.missing(state, s.Scheduler == "kubernetes")
			}
			list = append(list, x)
		}
	}
	return list, nil
}

// began decides the phase of a shard that has a folder. A shard that is done stays so, whatever its
// job does. Otherwise a job that waits or runs decides, since the shard will continue.
func (x *Shard) began(p record.Part, state State) {
	switch {
	case p.State == record.ShardDone:
		x.Phase = Done
		if p.Broken > 0 {
			x.Why = fmt.Sprintf("%d records did not succeed", p.Broken)
		}
	case p.State == record.ShardRunning || state.Phase == Running:
		x.Phase = Running
	case state.Phase == Queued:
		x.Phase, x.Why = Queued, state.Why
	default:
		x.Phase = Failed
		switch {
		case state.Why != "" && state.Why != "failed":
			x.Why = state.Why
		case p.State == record.ShardStopped:
			x.Why = "killed"
		case p.State == record.ShardIncomplete:
			x.Why = "ended early"
		case p.Exit != nil:
			x.Why = fmt.Sprintf("exit code %d", *p.Exit)
			if *p.Exit == interrupted {
				x.Why = "interrupted"
			}
		}
	}
}

// interrupted is the exit code after a signal.
const interrupted = 130

// missing decides the phase of a shard without a folder. If the folder may be elsewhere, in a
// volume that is not mounted here, it trusts the scheduler.
func (x *Shard) missing(state State, elsewhere bool) {
	x.Why = state.Why
	switch {
	case state.Phase == Unknown:
		x.Phase = Missing
	case state.Phase == Done && !elsewhere:
		x.Phase, x.Why = Missing, "its job ended, but it has no folder"
	default:
		x.Phase = state.Phase
	}
}

// Again begins a round with the shards that failed or are missing. It reports whether there are
// any.
func (s *Submission) Again(list []Shard) bool {
	var jobs []Job
	for _, x := range list {
		if x.Phase != Failed && x.Phase != Missing {
			continue
		}
		i := slices.IndexFunc(jobs, func(j Job) bool { return j.Group == x.Group })
		if i < 0 {
			i, jobs = len(jobs), append(jobs, Job{Group: x.Group})
		}
		jobs[i].Shards = append(jobs[i].Shards, x.Place.Shard)
	}
	if jobs == nil {
		return false
	}
	s.Rounds = append(s.Rounds, Round{Jobs: jobs})
	return true
}

// Table returns a table with a row for each shard.
func Table(list []Shard, groups bool) *table.Table {
	columns := []string{"shard", "state", "records", "nodes", "job", "why"}
	if groups {
		columns = append([]string{"group"}, columns...)
	}
	t := &table.Table{}
	for _, c := range columns {
		t.Columns = append(t.Columns, table.Column{Name: c, Key: c})
	}
	for _, x := range list {
		records := "-"
		if x.Planned > 0 {
			records = fmt.Sprintf("%d of %d", x.Done, x.Planned)
		}
		cells := []string{fmt.Sprintf("%d/%d", x.Shard, x.Count), string(x.Phase), records, strings.Join(x.Nodes, " "), x.Job, x.Why}
		if groups {
			cells = append([]string{x.Group}, cells...)
		}
		var row []table.Cell
		for _, c := range cells {
			row = append(row, table.Text(c))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
