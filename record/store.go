package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"rnnbench/internal/input"
	"rnnbench/record/files"
	"rnnbench/rnn/cell"
)

// Names of the files of a results folder.
const (
	recordsFile  = "records.jsonl"
	manifestFile = "manifest.json"
	latestFile   = "latest" // text: the id of the newest run
)

// A file is the part of *os.File that a run needs.
type file interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// A Run is a run's folder open for writing. Its methods may be called from several goroutines.
type Run struct {
	dir      string
	opened   os.FileInfo // of the records file
	warnings []Warning

	mu       sync.Mutex
	file     file
	size     int64 // bytes of whole lines
	seq      int
	manifest Manifest
	newest   map[string]outcome
	node     *Node           // the machine that measures; nil: there is only one
	retry    bool            // Done ignores failed records from before the run was resumed
	again    map[string]bool // and those of these keys
	broken   error           // why nothing can be appended
}

// outcome is what Done and the manifest's counts need to know of a record.
type outcome struct {
	status  Status
	passing bool
	before  bool // the record is from before the run was resumed
}

// Create creates a new run in dir and makes it dir's latest. It sets the manifest's schemas, run,
// process and start. It fails if dir cannot be written, so that nothing is measured in vain.
func Create(dir string, m Manifest) (*Run, error) { return createRun(dir, m, true) }

// CreateAside is Create, but the run does not become the latest: commands that are given no run ignore
// it, for instance a profile.
func CreateAside(dir string, m Manifest) (*Run, error) { return createRun(dir, m, false) }

func createRun(dir string, m Manifest, latest bool) (*Run, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("record: cannot make the folder %s: %w", dir, err)
	}
	fillNew(&m)
	path, err := makeFolder(dir, &m)
	if err != nil {
		return nil, err
	}
	return start(dir, path, os.O_CREATE|os.O_EXCL, m, latest)
}

// fillNew sets the fields of a new run's manifest that the store knows.
func fillNew(m *Manifest) {
	m.Schema, m.Records = ManifestSchema, Schema
	m.PID, m.Started = os.Getpid(), now()
	m.Resumed, m.Finished, m.Exit, m.Counts, m.Load = []time.Time{}, nil, nil, map[Status]int{}, nil
	if m.Config == nil {
		m.Config = json.RawMessage("null")
	}
}

// start creates the files of a new run in the folder at path, which is in dir.
func start(dir, path string, flags int, m Manifest, latest bool) (*Run, error) {
	r, err := open(path, flags)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	r.manifest = m
	if err = r.save(); err == nil && latest {
		err = writeAtomically(filepath.Join(dir, latestFile), []byte(m.Run+"\n"))
	}
	if err != nil {
		return nil, errors.Join(err, r.file.Close(), os.RemoveAll(path))
	}
	return r, nil
}

// makeFolder creates the folder of a new run and names the run after it. Processes that start in the
// same instant get different folders.
func makeFolder(dir string, m *Manifest) (string, error) {
	device := "none"
	if len(m.Devices) > 0 {
		device = slug(m.Devices[0].Key)
	}
	for attempt := range 1000 {
		hash := sha256.Sum256(fmt.Appendf(nil, "%s %q %d %d %d", m.Scope.Hash, m.Argv, m.PID, time.Now().UnixNano(), attempt))
		m.Run = fmt.Sprintf("%s-%s-%x", m.Started.Format("20060102T150405Z"), device, hash[:2])
		path := filepath.Join(dir, m.Run)
		err := os.Mkdir(path, 0o777)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("record: cannot write to the folder %s: %w", dir, err)
		}
	}
	return "", fmt.Errorf("record: cannot name a new run in %s: every name is taken", dir)
}

// slug reduces a text to a name that every file system accepts.
func slug(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	s = strings.Join(words, "-")
	if len(s) > 40 {
		s = strings.TrimRight(s[:40], "-")
	}
	if s == "" {
		return "device"
	}
	return s
}

// Resume opens a run, finished or not, to append to it. path is a path that Read accepts. An
// incomplete last line is removed, with a warning. The error is a *BusyError if another process is
// writing the run.
func Resume(path string) (*Run, error) {
	where, err := locate(path)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(where)
	if filepath.Base(where) != recordsFile {
		return nil, fmt.Errorf("record: cannot resume %s, which is not the records of a run: name a run's folder", where)
	}
	r, err := open(dir, 0)
	if err != nil {
		return nil, err
	}
	if err := r.resume(where); err != nil {
		return nil, errors.Join(err, r.file.Close())
	}
	return r, nil
}

func (r *Run) resume(where string) error {
	var err error
	if r.manifest, err = readManifest(filepath.Join(r.dir, manifestFile)); err != nil {
		return err
	}
	if err := r.manifest.Resumable(); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if r.size, err = r.terminate(where); err != nil {
		return err
	}
	f, err := input.Open(where)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	defer f.Close()
	records, warnings, err := ReadRecords(f, where)
	if err != nil {
		return err
	}
	r.warnings = append(r.warnings, warnings...)
	for i := range records {
		if records[i].Run != r.manifest.Run {
			return fmt.Errorf("record: %s holds a record of run %s but belongs to run %s: runs must not be mixed", where, records[i].Run, r.manifest.Run)
		}
		r.note(&records[i])
		o := r.newest[records[i].Key()]
		o.before = true
		r.newest[records[i].Key()] = o
		r.seq = max(r.seq, records[i].Seq+1)
	}
	files.Clean(r.dir)
	files.Clean(filepath.Dir(r.dir)) // of the file that names the latest run
	r.manifest.PID = os.Getpid()
	r.manifest.Resumed = append(r.manifest.Resumed, now())
	r.manifest.Finished, r.manifest.Exit = nil, nil
	return r.save()
}

// terminate makes the records file end with a whole line and returns its length in bytes.
func (r *Run) terminate(where string) (int64, error) {
	data, err := input.ReadFile(where, math.MaxInt64-1)
	if err != nil {
		return 0, fmt.Errorf("record: %w", err)
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	last := data[whole:]
	if len(last) == 0 {
		return int64(whole), nil
	}
	if _, err := parseRecord(last); err == nil || errors.Is(err, errSchema) {
		if _, err := r.file.WriteAt([]byte("\n"), int64(len(data))); err != nil {
			return 0, fmt.Errorf("record: %s: %w", where, err)
		}
		return int64(len(data) + 1), nil
	}
	r.warnings = append(r.warnings, Warning{
		Where: fmt.Sprintf("%s:%d", where, bytes.Count(data, []byte("\n"))+1),
		Text:  "the last line is incomplete and was removed; its point is measured again",
	})
	if err := r.file.Truncate(int64(whole)); err != nil {
		return 0, fmt.Errorf("record: %s: %w", where, err)
	}
	return int64(whole), nil
}

// open opens and locks the records of a run.
func open(dir string, flags int) (*Run, error) {
	path := filepath.Join(dir, recordsFile)
	f, err := os.OpenFile(path, os.O_WRONLY|flags, 0o666)
	if err != nil {
		return nil, fmt.Errorf("record: cannot write %s: %w", path, err)
	}
	if err := lock(f); err != nil {
		if errors.Is(err, files.ErrLocked) {
			return nil, errors.Join(busy(dir), f.Close())
		}
		return nil, errors.Join(fmt.Errorf("record: cannot lock %s: %w", path, err), f.Close())
	}
	opened, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("record: %w", err), f.Close())
	}
	return &Run{dir: dir, file: f, opened: opened, newest: map[string]outcome{}}, nil
}

// Dir is the run's folder.
func (r *Run) Dir() string { return r.dir }

// Warnings lists the faults of the records that Resume found.
func (r *Run) Warnings() []Warning { return r.warnings }

// Manifest returns a copy of the current manifest.
func (r *Run) Manifest() Manifest {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.manifest
	m.Counts = maps.Clone(m.Counts)
	return m
}

// RetryFailed makes Done ignore records that failed before the run was resumed.
func (r *Run) RetryFailed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retry = true
}

// MeasureAgain makes Done ignore the records of these keys from before the run was resumed.
func (r *Run) MeasureAgain(keys []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again = map[string]bool{}
	for _, k := range keys {
		r.again[k] = true
	}
}

// Done reports whether the run has a record of key that need not be measured again: any but one that
// was interrupted or lost its worker.
func (r *Run) Done(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := r.newest[key]
	return ok && !o.passing && !(o.before && (r.again[key] || r.retry && o.status.Broken()))
}

// Measured returns the status of the newest record of every key.
func (r *Run) Measured() map[string]Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := make(map[string]Status, len(r.newest))
	for key, o := range r.newest {
		m[key] = o.status
	}
	return m
}

// note remembers the outcome of a record that is on file.
func (r *Run) note(rec *Record) {
	r.newest[rec.Key()] = outcome{status: rec.Status, passing: rec.Passing()}
}

// Append writes rec as one line in one call, and sets its Schema, Run, Seq and Time. If the line
// cannot be written whole, for instance on a full disk, the file is cut back to its whole lines. A
// later Append may succeed.
func (r *Run) Append(rec *Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return r.broken
	}
	rec.Schema, rec.Run, rec.Seq, rec.Time = Schema, r.manifest.Run, r.seq, now()
	if r.node != nil {
		rec.Node = r.node
	}
	complete(rec)
	if path := unwritable(reflect.ValueOf(rec).Elem(), ""); path != "" {
		return fmt.Errorf("record: cannot write record %d: %s is not a finite number", rec.Seq, path)
	}
	if c := cell.Lookup(rec.Point.Cell); c != nil && c.Text != "" {
		rec.Equations = &c.Text
	}
	line, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("record: cannot write record %d: %w", rec.Seq, err)
	}
	line = append(line, '\n')
	if err := r.checkFile(); err != nil {
		r.broken = err
		return err
	}
	if _, err := r.file.WriteAt(line, r.size); err != nil {
		err = fmt.Errorf("record: cannot write record %d to %s (earlier records are safe): %w", rec.Seq, r.dir, files.Cause(err))
		if cut := r.file.Truncate(r.size); cut != nil {
			r.broken = err
		}
		return err
	}
	r.size += int64(len(line))
	r.seq++
	r.note(rec)
	return nil
}

// complete replaces nil lists and maps, which JSON would write as null, by empty ones.
func complete(rec *Record) {
	if rec.Warnings == nil {
		rec.Warnings = []string{}
	}
	if rec.Impl.Knobs == nil {
		rec.Impl.Knobs = map[string]int{}
	}
	if s := rec.Samples; s != nil {
		if s.Iters == nil {
			s.Iters = []int{}
		}
		if s.Wall == nil {
			s.Wall = []float64{}
		}
		if s.Device == nil {
			s.Device = []float64{}
		}
		if s.Clock == nil {
			s.Clock = []float64{}
		}
	}
}

// unwritable names the first number in v that JSON cannot express; "": none.
func unwritable(v reflect.Value, path string) string {
	switch v.Kind() {
	case reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return path
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return unwritable(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if p := unwritable(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); p != "" {
				return p
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Tag.Get("json")
			if name == "" {
				continue // time.Time
			}
			if path != "" {
				name = path + "." + name
			}
			if p := unwritable(v.Field(i), name); p != "" {
				return p
			}
		}
	}
	return ""
}

// Update changes the manifest and saves it, for instance when a plan becomes known or a resumed run
// has another environment.
func (r *Run) Update(change func(*Manifest)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.manifest)
	return r.save()
}

// Finish records the exit status of the process and closes the run.
func (r *Run) Finish(exit int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := now()
	r.manifest.Finished, r.manifest.Exit = &end, &exit
	r.manifest.Load = loadAverage(os.DirFS("/"))
	err := errors.Join(r.file.Sync(), r.save(), r.file.Close())
	r.broken = fmt.Errorf("record: run %s is finished", r.manifest.Run)
	if err != nil {
		return fmt.Errorf("record: cannot finish run %s: %w", r.manifest.Run, err)
	}
	return nil
}

// save writes the manifest.
func (r *Run) save() error {
	r.manifest.Counts = map[Status]int{}
	for _, o := range r.newest {
		r.manifest.Counts[o.status]++
	}
	data, err := json.MarshalIndent(r.manifest, "", "  ")
	if err != nil {
		return fmt.Errorf("record: cannot write the manifest: %w", err)
	}
	return writeAtomically(filepath.Join(r.dir, manifestFile), append(data, '\n'))
}

// now is the time in UTC to the millisecond, without a monotonic part.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
