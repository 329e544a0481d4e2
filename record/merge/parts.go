package merge

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"rnnbench/record"
)

// Parts says how far the shards in dir are. Keys have only Index and Count. It is nil if dir does not
// exist yet. If several runs are the same shard, the one that started last counts.
func Parts(dir string) (map[record.Shard]record.Part, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, began := map[record.Shard]record.Part{}, map[record.Shard]record.Manifest{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !record.HasManifest(path) {
			continue
		}
		m, recs, _, err := record.Read(path)
		if err != nil {
			return nil, err
		}
		if m.Scope.Shard == nil || m.Merged != nil {
			continue
		}
		key := record.Shard{Index: m.Scope.Shard.Index, Count: m.Scope.Shard.Count}
		if b, ok := began[key]; ok && m.Started.Before(b.Started) {
			continue
		}
		began[key], all[key] = m, part(&record.Set{Manifest: m, Records: recs, Dir: path})
	}
	return all, nil
}
