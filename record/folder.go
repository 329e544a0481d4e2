package record

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"rnnbench/record/files"
)

// checkFile returns an error if the records file was removed or replaced: what is written to a removed
// file is lost.
func (r *Run) checkFile() error {
	path := filepath.Join(r.dir, recordsFile)
	now, err := os.Stat(path)
	if err == nil && r.opened != nil && os.SameFile(now, r.opened) {
		return nil
	}
	return fmt.Errorf("record: %s was removed or replaced during the run, so new records would be lost: start a new run", path)
}

// writeAtomically replaces the file at path. A reader sees the whole old or the whole new file.
func writeAtomically(path string, data []byte) error {
	err := files.Replace(path, func(w io.Writer) error { _, err := w.Write(data); return err })
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}
