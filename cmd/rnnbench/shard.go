package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"rnnbench/cluster"
	"rnnbench/record"
	"rnnbench/tuner/config"
	"rnnbench/tuner/plan"
)

// noShard is the value of --shard that measures the whole plan.
const noShard = "off"

// shardFlag adds the flag of commands that measure a part of a plan.
func (f *sweepFlags) shardFlag(fs *pflag.FlagSet) {
	fs.StringVar(&f.shard, "shard", "", "measure shard `I/N` of the plan, or continue it (see rnnbench merge); default: the shard of a scheduler's array of jobs; off: the whole plan")
	fs.StringVar(&f.submitted, "submitted-version", "", "`VERSION` of rnnbench that submitted the job")
	fs.StringVar(&f.required, "submitted-device", "", "`KEY` of the device that the job was submitted for")
	for _, name := range []string{"submitted-version", "submitted-device"} {
		_ = fs.MarkHidden(name) // it is there
	}
}

// readShard sets f.part from --shard, or f.array from the scheduler, before any device is opened.
func (f *sweepFlags) readShard(p *program) error {
	f.part, f.array = nil, nil
	if f.submitted != "" {
		if err := f.thisNode().SameVersion(f.submitted); err != nil {
			return usage(err, "have all machines run the same binary, or use submit --copy")
		}
	}
	switch {
	case f.shard == noShard:
		return nil
	case strings.Contains(f.shard, ","):
		s, err := plan.OneOf(f.shard, os.Getenv)
		if err != nil {
			return fmt.Errorf("--shard: %w", err)
		}
		f.part = &s
	case f.shard != "":
		s, err := plan.ParseShard(f.shard)
		if err != nil {
			return fmt.Errorf("--shard: %w", err)
		}
		f.part = &s
	case f.resume == "": // a run to resume knows its shard
		a, err := plan.FromScheduler(os.Getenv)
		if err != nil {
			return usage(err, arrayHint)
		}
		if a == nil {
			return nil
		}
		f.array = a
	default:
		return nil
	}
	if f.profile {
		return errors.New("--profile measures the whole plan: add --shard off")
	}
	if f.auto == autoRace {
		return errors.New("--auto race measures while the plan is made, so shards would differ: use --auto predict, or add --shard off")
	}
	return nil
}

// arrayHint is the hint where the variables of a scheduler do not name a shard.
const arrayHint = "use --shard I/N to name the shard, or --shard off to measure the whole plan"

// divided reports whether one shard is to be measured.
func (f *sweepFlags) divided() bool { return f.part != nil || f.array != nil }

// placed sets f.part to the shard of a job of an array. had are the shards of the same plan, by their
// folders.
func (f *sweepFlags) placed(p *program, dir string, had map[string]record.Manifest) error {
	if f.array == nil || f.part != nil {
		return nil
	}
	var shards []record.Shard
	for _, path := range slices.Sorted(maps.Keys(had)) {
		shards = append(shards, *had[path].Plan.Shard)
	}
	s, err := f.array.Among(shards)
	switch {
	case err != nil && shards != nil:
		n := shards[0].Count
		return usage(err, fmt.Sprintf("use --shard I/%d to continue one of the shards in %s, or --label WORD or --out DIR to divide the plan anew", n, dir))
	case err != nil:
		return usage(err, arrayHint)
	}
	again := ""
	if s.Count != f.array.Count {
		again = " and the shards in " + dir
	}
	p.note("shard %v, from %s%s; --shard off measures the whole plan", s, f.array.From, again)
	f.part = &s
	return nil
}

// divide returns the shard of q to measure, or all of q. If a run of that shard exists, it also
// returns its manifest and sets f.resume.
func (f *sweepFlags) divide(p *program, c config.Config, b *bench, q plan.Plan, before *record.Manifest) (plan.Plan, *record.Manifest, error) {
	name := ""
	if before != nil && before.Plan.Shard != nil {
		was := *before.Plan.Shard
		if s := f.part; s != nil && (s.Index != was.Index || s.Count != was.Count) {
			return q, before, fmt.Errorf("run %s cannot be resumed: it is shard %v, not %v", before.Run, was, s)
		}
		f.part, name = &was, was.Of
	}
	if !f.divided() {
		return q, before, nil
	}
	if before != nil && before.Plan.Shard == nil {
		return q, before, fmt.Errorf("run %s cannot be resumed as shard %v: its plan was not divided", before.Run, f.part)
	}
	var had map[string]record.Manifest
	if before == nil {
		had = record.ShardsOf(c.Dir, q.Hash(), c.Label, b.info.Key)
		if err := f.placed(p, c.Dir, had); err != nil {
			return q, nil, err
		}
	}
	if f.submitted != "" && !f.dryRun {
		n := f.thisNode()
		n.Shard, n.Device = f.part.String(), b.info.Key
		if err := n.SameDevice(c.Dir, f.required); err != nil {
			return q, before, &failure{exitNoDevice, err, "use submit --group for each kind of device, or ask the scheduler for nodes of one kind"}
		}
	}
	d, err := q.Divide(f.part.Count, record.OnGPU(b.info.Key))
	if err != nil {
		return q, before, err
	}
	dir, known := shardIn(had, *f.part)
	switch {
	case name != "":
	case known != "":
		name = known
	default:
		name = runName(c.Label, b.info.Key, q.Hash())
	}
	f.share = d.Share(*f.part)
	q = d.Shard(*f.part, name)
	if before != nil {
		return q, before, nil
	}
	if dir == "" {
		dir = filepath.Join(c.Dir, record.ShardFolder(*q.Shard))
	}
	m, err := f.begun(c, dir)
	return q, m, err
}

// shardIn finds the folder of a shard among the shards of a plan; "": it was not begun. of is the name
// of the run that all shards with the same count form together; "": none was begun.
func shardIn(had map[string]record.Manifest, s record.Shard) (dir, of string) {
	for _, path := range slices.Sorted(maps.Keys(had)) {
		o := had[path].Plan.Shard
		if o.Count != s.Count {
			continue
		}
		if of = o.Of; o.Index == s.Index {
			return path, of
		}
	}
	return "", of
}

// begun reads the run of a shard in dir, and sets f.resume to it; nil: it was not begun.
func (f *sweepFlags) begun(c config.Config, dir string) (*record.Manifest, error) {
	if !exists(filepath.Join(dir, "manifest.json")) {
		return nil, nil
	}
	m, _, _, err := record.Read(dir)
	if err == nil {
		err = m.Resumable()
	}
	if err == nil && m.Label != c.Label {
		err = fmt.Errorf("run %s belongs to another label: %q, not %q", m.Run, m.Label, c.Label)
	}
	if err == nil {
		err = resumableWith(c, &m)
	}
	if err != nil {
		return nil, usage(err, "use --label WORD or --out DIR to begin another run of the shard")
	}
	f.resume = dir
	return &m, nil
}

// thisNode describes this machine for the checks of a submitted job.
func (f *sweepFlags) thisNode() cluster.Node {
	return cluster.Node{Name: node(f.hideHost), Version: version()}
}

// runName returns the name of the merged run of a plan's shards. All machines compute the same one.
// Words that are the same in a file's name may differ in a label, so the hash tells labels apart.
func runName(label, device, hash string) string {
	if label != "" {
		hash = fmt.Sprintf("%x", sha256.Sum256([]byte(label+"\x00"+device+"\x00"+hash)))
	}
	return record.Slug(strings.TrimSpace(label+" "+device)) + "-" + hash[:8]
}

// resumableWith returns an error if settings c have other inputs or caches than run m.
func resumableWith(c config.Config, m *record.Manifest) error {
	was, err := config.FromJSON(m.Config)
	if err != nil {
		return fmt.Errorf("run %s: %w", m.Run, err)
	}
	old, err := config.Resolve(was)
	if err != nil {
		return fmt.Errorf("run %s: %w", m.Run, err)
	}
	return sameInputs(c, old, m)
}

// beginShard opens the run of a shard, or creates it.
func beginShard(dir string, s record.Shard, m record.Manifest) (*record.Run, error) {
	run, err := record.Claim(dir, record.ShardFolder(s), m)
	if err != nil {
		return nil, busyShard(s, &failure{exitError, err, "set --out DIR or RNNBENCH_RESULTS to a writable folder"})
	}
	return run, nil
}

// busyShard explains an error that another process measures the shard. It returns other errors
// unchanged.
func busyShard(s record.Shard, err error) error {
	if other := (*record.BusyError)(nil); errors.As(err, &other) {
		return &failure{exitError, fmt.Errorf("shard %v is being measured by %s in %s", s, other.Who, other.Dir),
			"give every job another shard, or wait for that process"}
	}
	return err
}

// node returns this machine's name, as its scheduler gives it. With hide, or without a name, it
// returns a hash that only tells machines apart.
func node(hide bool) string {
	name := os.Getenv("SLURMD_NODENAME")
	if name == "" && os.Getenv("JOB_COMPLETION_INDEX") != "" {
		name = os.Getenv("NODE_NAME")
	}
	if name == "" {
		name, _ = os.Hostname() // "": the machine has no name
	}
	if hide || name == "" {
		return fmt.Sprintf("node-%x", sha256.Sum256([]byte("rnnbench "+name)))[:len("node-")+6]
	}
	return name
}
