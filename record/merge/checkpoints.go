package merge

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"rnnbench/record"
	"rnnbench/record/files"
)

// note notes after how many iterations each checkpoint of a shard was saved. It does so before the
// records are read: a record is written before its checkpoint, so they are all there. -1: unreadable.
func (g *Group) note(dir string) error {
	list, err := record.Checkpoints(dir)
	if err != nil {
		return err
	}
	for _, path := range list {
		if g.saved[path], err = g.iterations(path); err != nil {
			g.saved[path] = unreadable
			g.Warnings = append(g.Warnings, record.Warning{Where: path, Text: fmt.Sprintf("the checkpoint is left out: %v", err)})
		}
	}
	return nil
}

// unreadable stands for the iterations of a checkpoint that cannot be read.
const unreadable = -1

// takeCheckpoints puts the shards' checkpoints into the merged run in dir, so that its training can
// continue. Each network belongs to one shard, and its number is that in the whole agenda.
func (g *Group) takeCheckpoints(dir string) error {
	for i := range g.Sets {
		list, err := record.Checkpoints(g.Sets[i].Dir)
		if err != nil {
			return err
		}
		for _, from := range list {
			had, ok := g.saved[from]
			if ok && had == unreadable {
				continue
			}
			taken := false
			if ok {
				if taken, err = g.take(from, filepath.Join(dir, filepath.Base(from)), had); err != nil {
					return fmt.Errorf("cannot keep checkpoint %s in the merged run: %w", from, err)
				}
			}
			if !taken {
				g.Ahead = append(g.Ahead, from)
			}
		}
	}
	return nil
}

// take links the file from to the path to, or copies it where links are impossible. It keeps the merged
// run's own file if that was not saved after fewer iterations. It leaves out a file that was saved after
// more iterations than had, since there are records that were not read, and then returns false.
// What is in the files decides, not their times: clocks of machines differ.
func (g *Group) take(from, to string, had int) (bool, error) {
	copied := filepath.Join(filepath.Dir(to), "."+filepath.Base(to)+".link.tmp")
	if err := os.Remove(copied); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	defer os.Remove(copied) // unless it was renamed
	if os.Link(from, copied) != nil {
		f, err := os.Open(from)
		if err != nil {
			return false, err
		}
		defer f.Close()
		if err := files.Write(copied, func(w io.Writer) error { _, err := io.Copy(w, f); return err }); err != nil {
			return false, err
		}
	}
	n, err := g.iterations(copied) // the shard may have saved another one by now
	if err != nil || n > had {
		return false, err
	}
	if own, err := g.iterations(to); err == nil && own >= n {
		return true, nil
	}
	return true, os.Rename(copied, to)
}
