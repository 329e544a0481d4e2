package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"rnnbench/internal/input"
	"rnnbench/record/files"
)

// controlFile holds the records that compare the nodes of a merged run.
const controlFile = "control.jsonl"

// A Merger is the content of a merged run.
type Merger struct {
	Manifest Manifest
	Records  []Record
	Controls []Record // of the control point, from all shards
}

// Replace changes or creates the merged run called name in dir. A reader sees each file whole, either
// old or new. Replace returns a *BusyError if another process is writing the run.
func Replace(dir, name string, change func(*Merger) error) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("record: cannot make the folder %s: %w", dir, err)
	}
	path := filepath.Join(dir, name)
	unlock, err := files.Lock(path)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	defer unlock()
	if Writing(path) {
		return busy(path)
	}
	var m Merger
	if HasManifest(path) {
		if m.Manifest, err = ReadManifest(path); err != nil {
			return err
		}
	}
	if m.Records, err = readAll(filepath.Join(path, recordsFile)); err != nil {
		return err
	}
	if m.Controls, err = readAll(filepath.Join(path, controlFile)); err != nil {
		return err
	}
	m.Records = newest(m.Records)
	if err := change(&m); err != nil {
		return err
	}
	if err := m.put(dir, name); err != nil {
		return err
	}
	return writeChanged(filepath.Join(dir, latestFile), []byte(name+"\n"))
}

// put writes the run called name in dir. A new one appears with all its files, so that a process that is
// killed leaves no run without a manifest. The caller has locked the name.
func (m *Merger) put(dir, name string) error {
	path := filepath.Join(dir, name)
	if exists(path) {
		files.Clean(path)
		return m.write(path)
	}
	fresh := filepath.Join(dir, "."+name+".new")
	err := os.RemoveAll(fresh) // of a process that was killed
	if err == nil {
		err = os.Mkdir(fresh, 0o777)
	}
	if err != nil {
		return fmt.Errorf("record: cannot write to the folder %s: %w", dir, err)
	}
	if err = m.write(fresh); err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	return nil
}

// write writes the files that changed.
func (m *Merger) write(path string) error {
	for _, f := range []struct {
		name    string
		records []Record
	}{{controlFile, m.Controls}, {recordsFile, m.Records}} {
		var text bytes.Buffer
		for i := range f.records {
			complete(&f.records[i])
			line, err := json.Marshal(&f.records[i])
			if err != nil {
				return fmt.Errorf("record: cannot write a record to %s: %w", path, err)
			}
			text.Write(append(line, '\n'))
		}
		if err := writeChanged(filepath.Join(path, f.name), text.Bytes()); err != nil {
			return err
		}
	}
	data, err := json.MarshalIndent(m.Manifest, "", "  ")
	if err != nil {
		return fmt.Errorf("record: cannot write the manifest: %w", err)
	}
	return writeChanged(filepath.Join(path, manifestFile), append(data, '\n'))
}

// writeChanged replaces a file unless it has this content already.
func writeChanged(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return writeAtomically(path, data)
}

// readAll reads all records of a file; nil: there is no file.
func readAll(path string) ([]Record, error) {
	f, err := input.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	defer f.Close()
	records, _, err := ReadRecords(f, path)
	return records, err
}

// HasManifest reports whether dir is the folder of a run.
func HasManifest(dir string) bool { return exists(filepath.Join(dir, manifestFile)) }

// ReadManifest reads the manifest of the run in dir.
func ReadManifest(dir string) (Manifest, error) {
	return readManifest(filepath.Join(dir, manifestFile))
}

// NamesLatest reports whether path is the file that names the latest run of a results folder.
func NamesLatest(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && filepath.Base(path) == latestFile
}
