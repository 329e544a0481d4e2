package job

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"rnnbench/internal/exit"
	"rnnbench/record"
)

// placed sets the part to the shard of a job of an array. had are the shards of the same agenda, by their
// folders.
func (j *Job) placed(had map[string]record.Manifest) error {
	r := j.Request
	if r.array == nil || r.part != nil {
		return nil
	}
	var shards []record.Shard
	for _, path := range slices.Sorted(maps.Keys(had)) {
		shards = append(shards, *had[path].Scope.Shard)
	}
	s, err := r.array.Among(shards)
	switch {
	case err != nil && shards != nil:
		n := shards[0].Count
		return exit.Misuse(err, fmt.Sprintf("use --shard I/%d to continue one of the shards in %s, or --label WORD or --out DIR to divide the plan anew", n, r.Config.Dir))
	case err != nil:
		return exit.Misuse(err, arrayHint)
	}
	again := ""
	if s.Count != r.array.Count {
		again = " and the shards in " + r.Config.Dir
	}
	j.tell.Note("shard %v, from %s%s; --shard off measures the whole plan", s, r.array.From, again)
	r.part = &s
	return nil
}

// divide reduces the agenda to the shard to measure, if one is. If a run of that shard exists, it becomes the
// run to resume.
func (j *Job) divide() error {
	r, dir, name := j.Request, j.Config.Dir, ""
	if b := j.Before; b != nil && b.Scope.Shard != nil {
		was := *b.Scope.Shard
		if s := r.part; s != nil && (s.Index != was.Index || s.Count != was.Count) {
			return fmt.Errorf("run %s cannot be resumed: it is shard %v, not %v", b.Run, was, s)
		}
		r.part, name = &was, was.Of
	}
	if !r.Divided() {
		return nil
	}
	if b := j.Before; b != nil && b.Scope.Shard == nil {
		return fmt.Errorf("run %s cannot be resumed as shard %v: its plan was not divided", b.Run, r.part)
	}
	var had map[string]record.Manifest
	key := j.Bench.Info.Key
	if j.Before == nil {
		had = record.ShardsOf(dir, j.Agenda.Hash(), j.Config.Label, key)
		if err := j.placed(had); err != nil {
			return err
		}
	}
	if r.Submitted != "" && !r.DryRun {
		n := r.thisNode()
		n.Shard, n.Device = r.part.String(), key
		if err := n.SameDevice(dir, r.Required); err != nil {
			return exit.With(exit.NoDevice, err, "use submit --group for each kind of device, or ask the scheduler for nodes of one kind")
		}
	}
	d, err := j.Agenda.Divide(r.part.Count, record.OnGPU(key))
	if err != nil {
		return err
	}
	folder, known := shardIn(had, *r.part)
	switch {
	case name != "":
	case known != "":
		name = known
	default:
		name = runName(j.Config.Label, key, j.Agenda.Hash())
	}
	j.Share = d.Share(*r.part)
	j.Agenda = d.Shard(*r.part, name)
	if j.Before != nil {
		return nil
	}
	if folder == "" {
		folder = filepath.Join(dir, record.ShardFolder(*j.Agenda.Shard))
	}
	return j.continued(folder)
}

// shardIn finds the folder of a shard among the shards of an agenda; "": it was not begun. of is the name
// of the run that all shards with the same count form together; "": none was begun.
func shardIn(had map[string]record.Manifest, s record.Shard) (dir, of string) {
	for _, path := range slices.Sorted(maps.Keys(had)) {
		o := had[path].Scope.Shard
		if o.Count != s.Count {
			continue
		}
		if of = o.Of; o.Index == s.Index {
			return path, of
		}
	}
	return "", of
}

// continued makes the run of a shard in dir the one to resume, if it was begun.
func (j *Job) continued(dir string) error {
	if !record.HasManifest(dir) {
		return nil
	}
	m, _, _, err := record.Read(dir)
	if err == nil {
		err = m.Resumable()
	}
	if err == nil && m.Label != j.Config.Label {
		err = fmt.Errorf("run %s belongs to another label: %q, not %q", m.Run, m.Label, j.Config.Label)
	}
	if err == nil {
		err = resumableWith(j.Config, &m)
	}
	if err != nil {
		return exit.Misuse(err, "use --label WORD or --out DIR to begin another run of the shard")
	}
	j.Resume, j.Before = dir, &m
	return nil
}

// runName returns the name of the merged run of an agenda's shards. All machines compute the same one.
// Words that are the same in a file's name may differ in a label, so the hash tells labels apart.
func runName(label, device, hash string) string {
	if label != "" {
		hash = fmt.Sprintf("%x", sha256.Sum256([]byte(label+"\x00"+device+"\x00"+hash)))
	}
	return record.Slug(strings.TrimSpace(label+" "+device)) + "-" + hash[:8]
}

// busyShard explains an error that another process measures the shard. It returns other errors
// unchanged.
func busyShard(s record.Shard, err error) error {
	if other := (*record.BusyError)(nil); errors.As(err, &other) {
		return exit.With(exit.Error, fmt.Errorf("shard %v is being measured by %s in %s", s, other.Who, other.Dir),
			"give every job another shard, or wait for that process")
	}
	return err
}
