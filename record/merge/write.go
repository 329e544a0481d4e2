package merge

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnnbench/record"
)

// Write creates or updates the run in dir that the shards form together. It returns the run's folder
// and manifest. The same shards give the same bytes. Records of an earlier merge that no shard has now
// stay.
func (g *Group) Write(dir string) (string, record.Manifest, error) {
	name := g.Sets[0].Manifest.Scope.Shard.Of
	path := filepath.Join(dir, name)
	var m record.Manifest
	err := record.Replace(dir, name, func(old *record.Merger) error {
		if old.Manifest.Run != "" && old.Manifest.Scope.Hash != g.Sets[0].Manifest.Scope.Hash {
			return fmt.Errorf("%s is a run of another plan: use --out DIR for another folder", path)
		}
		own, controls := g.split()
		own, controls = union(old.Records, own, (*record.Record).Key), union(old.Controls, controls, controlKey)
		for i := range own {
			own[i].Run, own[i].Seq = name, i
		}
		m = g.manifest(old.Manifest, own, controls)
		old.Manifest, old.Records, old.Controls = m, own, controls
		return nil
	})
	if err == nil {
		err = g.takeCheckpoints(path)
	}
	return path, m, err
}

// split separates the records of the shards' own points from the records of the control point.
func (g *Group) split() (own, controls []record.Record) {
	at := g.Sets[0].Manifest.Scope.Shard.Control.Place()
	for _, s := range g.Sets {
		for _, r := range s.Records {
			if r.Point.Place() == at && r.Training == nil {
				controls = append(controls, r)
			}
			if !s.Manifest.Scope.Shard.Compares(&r) {
				own = append(own, r)
			}
		}
	}
	return own, controls
}

// controlKey tells the control records of shards apart.
func controlKey(r *record.Record) string {
	name, shard := origin(r)
	return fmt.Sprintf("%s|%d|%s", name, shard, r.Key())
}

// union returns the records of both lists, in the order of shards and of time. Of two with the same
// key it keeps the newer.
func union(before, now []record.Record, key func(*record.Record) string) []record.Record {
	at := map[string]int{}
	var all []record.Record
	for _, list := range [][]record.Record{before, now} {
		for _, r := range list {
			k := key(&r)
			i, ok := at[k]
			switch {
			case !ok:
				at[k] = len(all)
				all = append(all, r)
			case !r.Time.Before(all[i].Time):
				all[i] = r
			}
		}
	}
	slices.SortStableFunc(all, func(a, b record.Record) int {
		_, x := origin(&a)
		_, y := origin(&b)
		return cmp.Or(cmp.Compare(x, y), a.Time.Compare(b.Time), strings.Compare(key(&a), key(&b)))
	})
	return all
}

// manifest makes the manifest of the merged run.
func (g *Group) manifest(old record.Manifest, own, controls []record.Record) record.Manifest {
	first := &g.Sets[0].Manifest
	m := *first
	s := *first.Scope.Shard
	m.Run, m.Argv, m.Resumed = s.Of, whole(first.Argv), []time.Time{}
	m.Scope = record.Scope{Hash: first.Scope.Hash, Points: s.Points, Records: s.Records, Summary: strings.TrimSuffix(first.Scope.Summary, fmt.Sprintf("; shard %v", s))}
	m.Merged = &record.Merged{Count: s.Count, Shards: g.parts(old), Nodes: Nodes(slices.Concat(own, controls), controls)}
	exit := 0
	m.Winners = nil
	if t := old.Started; !t.IsZero() && t.Before(m.Started) {
		m.Started = t
	}
	if t := old.Finished; t != nil && m.Finished != nil && t.After(*m.Finished) {
		m.Finished = t
	}
	for i := range g.Sets {
		n := &g.Sets[i].Manifest
		if n.Started.Before(m.Started) {
			m.Started = n.Started
		}
		if n.Finished == nil || m.Finished != nil && n.Finished.After(*m.Finished) {
			m.Finished = n.Finished
		}
		for _, w := range n.Winners {
			if w.Run == n.Run {
				w.Run = s.Of
			}
			m.Winners = append(m.Winners, w)
		}
	}
	for _, w := range old.Winners {
		if !slices.ContainsFunc(m.Winners, func(o record.Winner) bool { return o.Point == w.Point }) {
			m.Winners = append(m.Winners, w)
		}
	}
	if m.Exit = &exit; !m.Merged.Complete() {
		m.Finished, m.Exit = nil, nil
	}
	m.Counts = map[record.Status]int{}
	for i := range own {
		m.Counts[own[i].Status]++
	}
	return m
}

// ofShard lists flags that a command line has only because it measures a shard.
var ofShard = []string{"--shard", "--resume", "--submitted-version", "--submitted-device"}

// whole returns a command line without the flags of ofShard.
func whole(argv []string) []string {
	var list []string
	for i := 0; i < len(argv); i++ {
		switch a := argv[i]; {
		case slices.Contains(ofShard, a):
			i++
		case strings.Contains(a, "=") && slices.Contains(ofShard, a[:strings.Index(a, "=")]):
		default:
			list = append(list, a)
		}
	}
	return list
}

// parts says how far each shard is. Shards of an earlier merge that were not given stay.
func (g *Group) parts(old record.Manifest) []record.Part {
	var list []record.Part
	for i := range g.Sets {
		list = append(list, part(&g.Sets[i]))
	}
	if old.Merged != nil {
		for _, p := range old.Merged.Shards {
			if !slices.ContainsFunc(list, func(o record.Part) bool { return o.Index == p.Index }) {
				list = append(list, p)
			}
		}
	}
	slices.SortFunc(list, func(a, b record.Part) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

// trained counts the networks of a shard that need no further training, and how many of them failed.
func trained(s *record.Set) (done, broken int) {
	for _, r := range record.Trainings(s.Records) {
		stop := r.Training.Stop
		if until := s.Manifest.Training; until != nil { // the limits may have been raised since
			stop = until.Reached(r.Training)
		}
		switch {
		case r.Status.Broken():
			done, broken = done+1, broken+1
		case r.Status == record.Skipped, stop != "":
			done++
		}
	}
	return done, broken
}

// part says how far a shard is.
func part(s *record.Set) record.Part {
	m := &s.Manifest
	p := record.Part{Index: m.Scope.Shard.Index, Run: m.Run, Exit: m.Exit, Planned: m.Scope.Records, Nodes: []string{}}
	for i := range s.Records {
		r := &s.Records[i]
		if name, _ := origin(r); !slices.Contains(p.Nodes, name) {
			p.Nodes = append(p.Nodes, name)
		}
		if r.Training == nil {
			p.Done++
			if r.Status.Broken() {
				p.Broken++
			}
		}
	}
	trained, broken := trained(s)
	p.Done, p.Broken = p.Done+trained, p.Broken+broken
	if m.Scope.Shard.Tune {
		p.Tune, p.Done, p.Planned = true, len(m.Winners), m.Scope.Shard.Own
	}
	if m.Scope.Shard.Trained {
		p.Train, p.Done, p.Planned = true, trained, m.Scope.Shard.Networks
	}
	exit := 0
	if m.Exit != nil {
		exit = *m.Exit
	}
	whole := p.Done >= p.Planned
	switch {
	case m.Finished == nil && record.Writing(s.Dir):
		p.State = record.ShardRunning
	case whole && (m.Finished == nil || exit == 0 || p.Broken > 0):
		p.State = record.ShardDone
	case m.Finished == nil:
		p.State = record.ShardStopped
	case exit != 0 && p.Broken == 0:
		p.State = record.ShardFailed
	default:
		p.State = record.ShardIncomplete
	}
	return p
}
