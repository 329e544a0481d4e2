package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rnnbench/results/files"
)

// checkFile returns an error if the records file was removed or replaced: what is written to a removed
// file is lost.
func (r *Run) checkFile() error {
	path := filepath.Join(r.dir, recordsFile)
	now, err := os.Stat(path)
	if err == nil && r.opened != nil && os.SameFile(now, r.opened) {
		return nil
	}
	return fmt.Errorf("results: %s was removed or replaced during the run, so new records would be lost: start a new run", path)
}

// removeStale removes the temporary files that killed processes left in writeAtomically for path, if
// they are at least as old as age.
func removeStale(path string, age time.Duration) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+".")
		if !ok || !strings.HasSuffix(rest, ".tmp") {
			continue
		}
		name := filepath.Join(filepath.Dir(path), e.Name())
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) >= age {
			_ = os.Remove(name) // a file that stays does no harm
		}
	}
}

// writeAtomically replaces the file at path. A reader sees the whole old or the whole new file.
func writeAtomically(path string, data []byte) error {
	temp := fmt.Sprintf("%s.%d-%d.tmp", path, os.Getpid(), time.Now().UnixNano())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("results: cannot write %s: %w", path, files.Cause(err))
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return fmt.Errorf("results: cannot write %s: %w", path, errors.Join(files.Cause(err), os.Remove(temp)))
	}
	return nil
}
