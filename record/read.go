package record

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnnbench/internal/input"
	"rnnbench/record/files"
	"rnnbench/rnn/equations"
)

// A Warning is a fault of a file that did not prevent reading it.
type Warning struct {
	Where string // "file:line"
	Text  string
}

func (w Warning) String() string { return w.Where + ": " + w.Text }

// Bounds of what is read, in bytes.
const (
	maxLine     = 64 << 20  // the line of a record
	maxManifest = 256 << 20 // a manifest
	maxLatest   = 4 << 10   // the file that names the latest run
)

// errSchema marks a record of another schema.
var errSchema = errors.New("unknown schema")

// Read reads a run. The path is a run's folder, its records file or a results folder, which stands for
// its latest run. Of records with the same key the newest counts. Unreadable lines are left out with a
// warning.
func Read(path string) (Manifest, []Record, []Warning, error) {
	s, warnings, err := read(path)
	return s.Manifest, s.Records, warnings, err
}

// A Set is a run that was read, with its label for tables and legends.
type Set struct {
	Label    string
	Manifest Manifest
	Records  []Record
	Dir      string // the run's folder; empty where records came without a manifest
}

// Program names the program of a run by its commit, or else by when the run began.
func (s Set) Program() string {
	return cmp.Or(s.Manifest.Environment.Tool.Commit(), s.Manifest.Started.UTC().Format("2006-01-02 15:04"))
}

// read reads a run and leaves its label empty.
func read(path string) (Set, []Warning, error) {
	where, err := locate(path)
	if err != nil {
		return Set{}, nil, err
	}
	f, err := openRecords(where, where == path)
	if err != nil {
		return Set{}, nil, fmt.Errorf("record: %w", err)
	}
	defer f.Close()
	records, warnings, err := ReadRecords(f, where)
	if err != nil {
		return Set{}, warnings, err
	}
	s := Set{Records: newest(records), Dir: filepath.Dir(where)}
	if s.Manifest, err = readManifest(filepath.Join(s.Dir, manifestFile)); err != nil {
		if errors.Is(err, errSchema) {
			return Set{}, warnings, err
		}
		s.Manifest, s.Dir = standIn(records), ""
		warnings = append(warnings, Warning{where, "the manifest next to it cannot be read, so the environment is unknown: " + err.Error()})
	}
	correctPeaks(s.Records, s.Manifest.Devices)
	setCopyRates(s.Records, s.Manifest.Devices)
	return s, warnings, nil
}

// openRecords opens a file of records. One that the user named may be a pipe.
func openRecords(where string, named bool) (*os.File, error) {
	if named {
		return os.Open(where)
	}
	return input.Open(where)
}

// ReadAll reads several runs, each given as a path or as label=path. A run
// without a label gets the manifest's, or else its id.
func ReadAll(args []string) ([]Set, []Warning, error) {
	var sets []Set
	var warnings []Warning
	for _, arg := range args {
		label, path := "", arg
		if before, after, ok := strings.Cut(arg, "="); ok {
			if _, err := os.Stat(arg); err != nil { // an existing path may contain "="
				label, path = before, after
			}
		}
		s, w, err := read(path)
		if err != nil {
			return nil, warnings, err
		}
		warnings = append(warnings, w...)
		s.Label = cmp.Or(label, s.Manifest.Label, s.Manifest.Run, path)
		sets = append(sets, s)
	}
	return sets, warnings, nil
}

// ReadRecords reads all records in the order in which they were appended. name is for messages. It
// fails if a line is a record of another schema or reading r fails.
func ReadRecords(r io.Reader, name string) ([]Record, []Warning, error) {
	var records []Record
	var warnings []Warning
	text, err := input.Text(r, name)
	if err != nil {
		return nil, nil, fmt.Errorf("record: %w", err)
	}
	lines := bufio.NewReaderSize(text, 1<<16)
	if head, err := lines.Peek(2); err == nil && (string(head) == "[\n" || string(head) == "[\r") {
		return nil, nil, fmt.Errorf("record: %s is a table, such as show -o json prints, not records: name the run's folder or its %s", name, recordsFile)
	}
	for n := 1; ; n++ {
		line, whole, err := readLine(lines)
		if err != nil && err != io.EOF {
			return nil, warnings, fmt.Errorf("record: reading %s: %w", name, err)
		}
		where := fmt.Sprintf("%s:%d", name, n)
		if line = bytes.TrimSpace(line); len(line) > 0 {
			rec, bad := parseRecord(line)
			switch {
			case bad == nil:
				records = append(records, rec)
			case errors.Is(bad, errSchema):
				return nil, warnings, fmt.Errorf("record: %s: %w", where, bad)
			case !whole:
				warnings = append(warnings, Warning{where, "the last line is incomplete and is ignored"})
			case errors.Is(bad, errContradiction):
				warnings = append(warnings, Warning{where, bad.Error() + "; it is ignored"})
			default:
				warnings = append(warnings, Warning{where, "this line is not a record and is ignored: " + bad.Error()})
			}
		}
		if err == io.EOF {
			return records, warnings, nil
		}
	}
}

// readLine returns the next line. whole is false if the line has no newline at its end. An overlong
// line is an error.
func readLine(r *bufio.Reader) (line []byte, whole bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			return nil, false, fmt.Errorf("it is no file of records: a line is longer than %d MiB", maxLine>>20)
		}
		if err != bufio.ErrBufferFull {
			return line, err == nil, err
		}
	}
}

// parseRecord reads one line. Its error wraps errSchema if the line is a record of a schema that this
// version does not know.
func parseRecord(line []byte) (Record, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return Record{}, err
	}
	switch {
	case head.Schema == "":
		return Record{}, errors.New("it has no schema")
	case !slices.Contains(Schemas(), head.Schema):
		return Record{}, fmt.Errorf("%w %q; this version reads only %s: use the version of rnnbench that wrote it", errSchema, head.Schema, strings.Join(Schemas(), " and "))
	}
	var rec Record
	if err := json.Unmarshal(line, &rec); err != nil {
		return Record{}, err
	}
	return rec, check(&rec)
}

// check returns an error for a record that tables and figures cannot handle.
func check(rec *Record) error {
	p := rec.Point
	switch {
	case !slices.Contains(Statuses(), rec.Status):
		return fmt.Errorf("%q is not a status", rec.Status)
	case !p.Worded():
		return errors.New("its point has no cell, pass or precision")
	case !p.InRange():
		return errors.New("its point has an invalid size")
	case rec.Impl.Name == "":
		return errors.New("it names no technique")
	}
	if s := rec.Stats; s != nil && (s.Min < 0 || s.Median < s.Min || s.Max < s.Median) {
		return errors.New("its statistics contradict each other")
	}
	if err := contradiction(rec); err != nil {
		return fmt.Errorf("%w: %w", errContradiction, err)
	}
	if rec.Equations == nil {
		return nil
	}
	_, err := equations.Restore(p.Cell, *rec.Equations)
	return err
}

// Statuses lists the statuses in the order of tables.
func Statuses() []Status {
	return []Status{OK, Skipped, Failed, Incorrect, NotConverged, Impossible, Timeout}
}

// newest returns the last record of each run and key.
func newest(records []Record) []Record {
	type key struct{ run, key string }
	seen := map[key]bool{}
	kept := make([]Record, 0, len(records))
	for _, rec := range slices.Backward(records) {
		k := key{rec.Run, rec.Key()}
		if !seen[k] {
			seen[k] = true
			kept = append(kept, rec)
		}
	}
	slices.Reverse(kept)
	return kept
}

// standIn makes a manifest for records that come without one.
func standIn(records []Record) Manifest {
	m := Manifest{Schema: ManifestSchema, Records: Schema}
	if len(records) > 0 {
		m.Run, m.Started = records[0].Run, records[0].Time
	}
	return m
}

// readManifest reads a run's manifest.
func readManifest(path string) (Manifest, error) {
	data, err := input.ReadTextFile(path, maxManifest)
	if err != nil {
		return Manifest{}, fmt.Errorf("record: %w", err)
	}
	var head struct {
		Schema  string `json:"schema"`
		Records string `json:"records"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Manifest{}, fmt.Errorf("record: %s: %w", path, err)
	}
	if head.Schema != ManifestSchema || !slices.Contains(Schemas(), head.Records) {
		return Manifest{}, fmt.Errorf("record: %s: %w %q of %q; this version reads only %q of %s: use the version of rnnbench that wrote it", path, errSchema,
			head.Schema, head.Records, ManifestSchema, strings.Join(Schemas(), " and "))
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("record: %s: %w", path, err)
	}
	var config bytes.Buffer // without the manifest's indentation
	if json.Compact(&config, m.Config) == nil {
		m.Config = config.Bytes()
	}
	return m, nil
}

// locate returns the records file that path stands for.
func locate(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("record: nothing to read at %s: %w", path, files.Cause(err))
	}
	if !info.IsDir() {
		if filepath.Base(path) == latestFile || filepath.Base(path) == manifestFile {
			return locate(filepath.Dir(path))
		}
		return path, nil
	}
	if file := filepath.Join(path, recordsFile); exists(file) {
		return file, nil
	}
	name, err := input.ReadTextFile(filepath.Join(path, latestFile), maxLatest)
	if errors.Is(err, fs.ErrNotExist) {
		if inner, _ := filepath.Glob(filepath.Join(path, "*", latestFile)); len(inner) > 0 {
			for i := range inner {
				inner[i] = filepath.Dir(inner[i])
			}
			return "", fmt.Errorf("record: %s has several folders of runs: name a run, or one of %s for its latest", path, strings.Join(inner, ", "))
		}
		return "", fmt.Errorf("record: %s is neither a run (it has no %s) nor a folder of runs (it has no file named %s)", path, recordsFile, latestFile)
	}
	if err != nil {
		return "", fmt.Errorf("record: %w", err)
	}
	run := strings.TrimSpace(string(name))
	if run == "" || run != filepath.Base(run) || !filepath.IsLocal(run) {
		return "", fmt.Errorf("record: %s does not name a run", filepath.Join(path, latestFile))
	}
	file := filepath.Join(path, run, recordsFile)
	if !exists(file) {
		return "", fmt.Errorf("record: the latest run of %s is %s, which has no %s", path, run, recordsFile)
	}
	return file, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
