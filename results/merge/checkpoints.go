package merge

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"rnnbench/results"
	"rnnbench/results/files"
)

// takeCheckpoints puts the shards' checkpoints into the merged run in dir, so that its training can
// continue. Each network belongs to one shard, and its number is that in the whole plan.
func (g *Group) takeCheckpoints(dir string) error {
	for i := range g.Sets {
		s := &g.Sets[i]
		if results.Writing(s.Dir) {
			continue // its checkpoints may be ahead of the records that were read
		}
		list, err := results.Checkpoints(s.Dir)
		if err != nil {
			return err
		}
		for _, from := range list {
			if err := g.take(from, filepath.Join(dir, filepath.Base(from)), s.Dir); err != nil {
				return fmt.Errorf("cannot keep checkpoint %s in the merged run: %w", from, err)
			}
		}
	}
	return nil
}

// take links the file from to the path to, or copies it where links are impossible. It leaves out a
// file that is newer than the records of its shard, or no newer than the merged run's own file.
func (g *Group) take(from, to, shard string) error {
	source, err := os.Stat(from)
	if err != nil {
		return err
	}
	if source.ModTime().After(g.read[shard]) {
		return nil
	}
	if old, err := os.Stat(to); err == nil && !source.ModTime().After(old.ModTime()) {
		return nil
	}
	linked := to + ".link"
	if err := os.Remove(linked); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if os.Link(from, linked) == nil {
		return os.Rename(linked, to)
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := files.Write(to, func(w io.Writer) error { _, err := io.Copy(w, f); return err }); err != nil {
		return err
	}
	return os.Chtimes(to, source.ModTime(), source.ModTime())
}
