// Package merge merges the shards of an agenda into one run.
package merge

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"rnnbench/record"
	"rnnbench/record/files"
)

// A Group holds the shards of one agenda that were found, ordered by index.
type Group struct {
	Sets     []record.Set
	Warnings []record.Warning

	// Ahead lists checkpoints that Write left out: they were saved after the records were read.
	Ahead []string

	iterations func(checkpoint string) (int, error)
	saved      map[string]int // iterations of each checkpoint, when the records were not read yet
}

// Read reads shards. paths are their folders, or folders that contain them. It leaves out merged runs,
// since a pattern such as out/* may match them too. iterations reads after how many iterations a
// checkpoint was saved.
func Read(paths []string, iterations func(checkpoint string) (int, error)) (*Group, error) {
	g := &Group{iterations: iterations, saved: map[string]int{}}
	for _, path := range paths {
		if record.NamesLatest(path) { // out/* matches this file too
			continue
		}
		list, err := folders(path)
		if err != nil {
			return nil, err
		}
		for _, dir := range list {
			if err := g.add(dir); err != nil {
				return nil, err
			}
		}
	}
	if len(g.Sets) == 0 {
		return nil, errors.New("no shard was given: name folders that rnnbench sweep, tune, train or reproduce made with --shard")
	}
	slices.SortStableFunc(g.Sets, func(a, b record.Set) int {
		return cmp.Compare(a.Manifest.Scope.Shard.Index, b.Manifest.Scope.Shard.Index)
	})
	return g, g.check()
}

// folders returns the runs that path stands for: itself, or the shards in it.
func folders(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("nothing to read at %s: %w", path, files.Cause(err))
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: name the folder of a shard", path)
	}
	if record.HasManifest(path) {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		dir := filepath.Join(path, e.Name())
		if !record.HasManifest(dir) {
			continue
		}
		if m, err := record.ReadManifest(dir); err == nil && m.Scope.Shard != nil {
			list = append(list, dir)
		}
	}
	if list == nil {
		return nil, fmt.Errorf("%s is no shard and holds none: make shards with --shard I/N or submit", path)
	}
	return list, nil
}

// add reads the run in dir.
func (g *Group) add(dir string) error {
	if err := g.note(dir); err != nil {
		return err
	}
	m, recs, warnings, err := record.Read(dir)
	if err != nil {
		return err
	}
	g.Warnings = append(g.Warnings, warnings...)
	s := m.Scope.Shard
	switch {
	case m.Merged != nil:
		return nil
	case s == nil:
		return fmt.Errorf("%s is no shard: its plan was not divided", dir)
	case s.Count < 1 || s.Index < 1 || s.Index > s.Count || len(m.Devices) == 0 || s.Of == "" || s.Of != filepath.Base(s.Of):
		return fmt.Errorf("%s is no shard: its manifest is damaged", dir)
	}
	if slices.ContainsFunc(g.Sets, func(o record.Set) bool { return same(o.Dir, dir) }) {
		return nil // it was named twice
	}
	g.Sets = append(g.Sets, record.Set{Manifest: m, Records: recs, Dir: dir})
	return nil
}

// same reports whether two paths lead to the same folder.
func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// check returns an error for shards that do not belong together.
func (g *Group) check() error {
	first := &g.Sets[0]
	m := &first.Manifest
	for i := range g.Sets[1:] {
		o := &g.Sets[i+1]
		n := &o.Manifest
		differ := func(what, a, b string) error {
			return fmt.Errorf("%s and %s cannot be merged: %s is %s in one and %s in the other", first.Dir, o.Dir, what, a, b)
		}
		before := &g.Sets[i]
		switch a, b := m.Scope.Shard, n.Scope.Shard; {
		case m.Scope.Hash != n.Scope.Hash:
			return differ("the plan", m.Scope.Hash+" ("+m.Scope.Summary+")", n.Scope.Hash+" ("+n.Scope.Summary+")")
		case a.Count != b.Count:
			return differ("the number of shards", fmt.Sprint(a.Count), fmt.Sprint(b.Count))
		case before.Manifest.Scope.Shard.Index == b.Index:
			return fmt.Errorf("%s and %s are both shard %v: omit one", before.Dir, o.Dir, b)
		case m.Devices[0].Key != n.Devices[0].Key:
			return differ("the device", m.Devices[0].Key, n.Devices[0].Key)
		case m.Devices[0].Facts["simd"] != n.Devices[0].Facts["simd"]:
			return differ("the instruction set", m.Devices[0].Facts["simd"], n.Devices[0].Facts["simd"])
		case record.OtherRivals(m.Devices[0], n.Devices[0]) != nil:
			name := record.RivalFact + record.OtherRivals(m.Devices[0], n.Devices[0])[0]
			return differ(name, m.Devices[0].Facts[name], n.Devices[0].Facts[name])
		case version(m) != version(n):
			return differ("the version of rnnbench", version(m), version(n))
		case a.Of != b.Of:
			return differ("the name of the run", a.Of, b.Of)
		case m.Records != n.Records:
			return differ("the form of records", m.Records, n.Records)
		case a.Limits.Options() != b.Limits.Options():
			return differ("the training by which the plan was divided", a.Limits.Options(), b.Limits.Options())
		case m.Training.Options() != n.Training.Options():
			return differ("the training", m.Training.Options(), n.Training.Options())
		case m.Training != nil && seed(m) != seed(n):
			return differ("the seed", seed(m), seed(n))
		}
	}
	return g.overlaps()
}

// version is the version of the program that measured.
func version(m *record.Manifest) string {
	t := m.Environment.Tool
	if t.Revision == "" {
		return t.Version
	}
	return t.Version + " (" + t.Revision + ")"
}

// seed is the seed of first weights and data; "": the manifest does not say.
func seed(m *record.Manifest) string {
	var c struct {
		Measure struct {
			Seed json.Number `json:"seed"`
		} `json:"measure"`
	}
	if json.Unmarshal(m.Config, &c) != nil {
		return ""
	}
	return c.Measure.Seed.String()
}

// overlaps returns an error if two shards measured the same place, which no division assigns to both.
func (g *Group) overlaps() error {
	owner := map[record.Point]*record.Set{}
	for i := range g.Sets {
		s := &g.Sets[i]
		for _, r := range s.Records {
			if s.Manifest.Scope.Shard.Compares(&r) {
				continue
			}
			at := r.Point.Place()
			if o := owner[at]; o != nil && o != s {
				return fmt.Errorf("%s and %s overlap: both measured %v", o.Dir, s.Dir, r.Point)
			}
			owner[at] = s
		}
	}
	return nil
}
