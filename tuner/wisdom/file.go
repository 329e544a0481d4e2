package wisdom

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"rnnbench/internal/exit"
	"rnnbench/internal/tomlfile"
	"rnnbench/record"
	"rnnbench/record/files"
	"rnnbench/rnn/axis"
)

// File is the name of the book in a user's configuration folder.
const File = "wisdom.toml"

// Path is the book's path: the flag, or else the variable RNNBENCH_WISDOM, or else File in the
// user's configuration folder.
func Path(flag string) (string, error) {
	for _, path := range []string{flag, os.Getenv("RNNBENCH_WISDOM")} {
		if path != "" {
			return path, nil
		}
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("wisdom: no default folder: name a file with --wisdom or RNNBENCH_WISDOM: %w", err)
	}
	return filepath.Join(dir, "rnnbench", File), nil
}

// Missing returns an error if a flag names a file that does not exist, for commands that only read it.
func Missing(flag string) error {
	if flag == "" {
		return nil
	}
	if _, err := os.Stat(flag); err == nil {
		return nil
	}
	return exit.Misuse(fmt.Errorf("--wisdom: file %s does not exist", flag), "create it with rnnbench tune --wisdom FILE, or omit --wisdom to use the default file")
}

// entry is an Entry in the form of the file. In the file the axes stand between place and finding, each
// under its name.
type entry struct {
	place
	record.Point
	finding
}

// place says where an entry holds.
type place struct {
	Device string `toml:"device"`
	Cache  string `toml:"cache"`
}

// finding is what tuning found.
type finding struct {
	Objective string `toml:"objective,omitempty"`

	Impl     string         `toml:"impl"`
	Knobs    map[string]int `toml:"knobs,inline"`
	Seconds  float64        `toml:"seconds"`
	Joules   float64        `toml:"joules,omitempty"`
	RunnerUp string         `toml:"runner_up"`
	Lead     float64        `toml:"lead"`
	Tried    int            `toml:"tried"`
	Complete bool           `toml:"complete"`
	Unsure   bool           `toml:"unsure,omitempty"`
	By       string         `toml:"by,omitempty"`

	Tool      string            `toml:"tool"`
	Libraries map[string]string `toml:"libraries,inline"`
	Run       string            `toml:"run"`
	Time      time.Time         `toml:"time"`
}

// text writes e as a table of the file.
func (e Entry) text() ([]byte, error) {
	parts := []any{place{e.Device, e.Cache}}
	for _, a := range axis.Keys() {
		if v := a.Field(&e.Point); a.First || !reflect.ValueOf(v).IsZero() {
			parts = append(parts, map[string]any{a.Name: v})
		}
	}
	parts = append(parts, finding{
		Objective: e.Objective, Impl: e.Impl, Knobs: e.Knobs, Seconds: e.Seconds, Joules: e.Joules, RunnerUp: e.RunnerUp, Lead: e.Lead, Tried: e.Tried, Complete: e.Complete, Unsure: e.Unsure, By: e.By,
		Tool: e.Tool, Libraries: e.Libraries, Run: e.Run, Time: e.Time.UTC(),
	})
	text := []byte("\n[[entry]]\n")
	for _, p := range parts {
		lines, err := toml.Marshal(p)
		if err != nil {
			return nil, err
		}
		text = append(text, lines...)
	}
	return text, nil
}

func fromFile(f entry) Entry {
	return Entry{
		Device: f.Device, Cache: f.Cache, Point: f.Point,
		Objective: f.Objective, Impl: f.Impl, Knobs: f.Knobs, Seconds: f.Seconds, Joules: f.Joules, RunnerUp: f.RunnerUp, Lead: f.Lead, Tried: f.Tried, Complete: f.Complete, Unsure: f.Unsure, By: f.By,
		Tool: f.Tool, Libraries: f.Libraries, Run: f.Run, Time: f.Time.UTC(),
	}
}

// check returns an error for an invalid entry. It puts the words of the point in the form that they
// have in memory.
func (f *entry) check() error {
	if err := f.Normalise(); err != nil {
		return err
	}
	switch {
	case f.Device == "":
		return errors.New("device is missing")
	case !f.Worded():
		return errors.New("cell, pass or precision is missing")
	case f.Cache != "hot" && f.Cache != "cold":
		return fmt.Errorf("cache is %q: write hot or cold", f.Cache)
	case !f.InRange():
		return errors.New("a size is out of range")
	case f.Impl == "":
		return errors.New("impl is missing")
	case f.By != "" && f.By != ByRace:
		return fmt.Errorf("by is %q: write %s, or omit it", f.By, ByRace)
	case f.Objective != "" && f.Objective != record.OfEnergy:
		return fmt.Errorf("objective is %q: write %s, or omit it for time", f.Objective, record.OfEnergy)
	case f.Joules < 0 || f.Joules > math.MaxFloat64 || math.IsNaN(f.Joules) || f.Objective == record.OfEnergy != (f.Joules > 0):
		return errors.New("joules must be above 0 where the objective is energy, and missing elsewhere")
	case !(f.Seconds > 0) || math.IsInf(f.Seconds, 0) || math.IsNaN(f.Lead) || math.IsInf(f.Lead, 0):
		return errors.New("seconds or lead is out of range")
	}
	return nil
}

// Read reads a book. A missing file is an empty book.
func Read(path string) (*Book, error) {
	data, err := tomlfile.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Book{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("wisdom: %w", err)
	}
	return Parse(data, path)
}

// Parse reads the text of a book; name is for messages.
func Parse(data []byte, name string) (*Book, error) {
	var head struct {
		Schema string `toml:"schema"`
	}
	if err := tomlfile.Check(data); err != nil {
		return nil, fmt.Errorf("wisdom: %s: %w", name, err)
	}
	if err := toml.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("wisdom: %s%s", name, explain(err))
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("wisdom: %s is not a wisdom file that this version reads: schema is %q, not %q", name, head.Schema, Schema)
	}
	var d struct {
		Schema string  `toml:"schema"`
		Entry  []entry `toml:"entry"`
	}
	if err := tomlfile.Decode(data, &d); err != nil {
		return nil, fmt.Errorf("wisdom: %s%s", name, explain(err))
	}
	b := &Book{}
	type question struct {
		device, cache, objective string
		point                    record.Point
	}
	asked := map[question]bool{}
	for i, f := range d.Entry {
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("wisdom: %s: entry %d: %w", name, i+1, err)
		}
		e := fromFile(f)
		q := question{e.Device, e.Cache, e.Objective, e.Point} // the fields that Entry.same compares
		if asked[q] {
			return nil, fmt.Errorf("wisdom: %s: entry %d has the same point as an earlier entry: remove one of them", name, i+1)
		}
		asked[q] = true
		b.Entries = append(b.Entries, e)
	}
	return b, nil
}

// explain describes a decoding error with its place in the file, in one line.
func explain(err error) string {
	var wrong *toml.DecodeError
	var unknown tomlfile.UnknownError
	switch {
	case errors.As(err, &unknown):
		return fmt.Sprintf(":%d: unknown key %q", unknown[0].Line, strings.Join(unknown[0].Key, "."))
	case errors.As(err, &wrong):
		row, column := wrong.Position()
		return fmt.Sprintf(":%d:%d: %s", row, column, strings.TrimPrefix(wrong.Error(), "toml: "))
	}
	return ": " + strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "toml: ")), " ")
}

// Format returns the text of a book. Entries are sorted, so equal books have equal texts.
func (b *Book) Format() ([]byte, error) {
	sorted := slices.Clone(b.Entries)
	slices.SortFunc(sorted, func(x, y Entry) int {
		return strings.Compare(order(x), order(y))
	})
	text, err := toml.Marshal(map[string]string{"schema": Schema})
	for _, e := range sorted {
		var more []byte
		if err == nil {
			more, err = e.text()
			text = append(text, more...)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("wisdom: %w", err)
	}
	return text, nil
}

// order spells an entry's key so that numbers sort by size. The objective stands between the axes that
// were there before it and later ones.
func order(e Entry) string {
	var key strings.Builder
	write := func(field any) {
		switch v := reflect.ValueOf(field); v.Kind() {
		case reflect.Int:
			fmt.Fprintf(&key, "%09d,", v.Int())
		case reflect.String:
			key.WriteString(v.String() + ",")
		default:
			fmt.Fprintf(&key, "%v,", field)
		}
	}
	early, late := axis.Sorted()
	write(e.Device)
	write(e.Cache)
	for _, a := range early {
		write(a.Field(&e.Point))
	}
	write(e.Objective)
	for _, a := range late {
		write(a.Field(&e.Point))
	}
	return key.String()
}

// Write replaces the file at path atomically: a reader sees the whole old or the whole new file. It
// creates the folder.
func (b *Book) Write(path string) error {
	text, err := b.Format()
	if err != nil {
		return err
	}
	if err := makeFolder(path); err != nil {
		return err
	}
	if err := files.Write(path, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return fmt.Errorf("wisdom: %w", err)
	}
	return nil
}

// Update changes the book at path under a lock, so no other process writes in between. change reports
// whether to write the book. Update returns the changed book.
func Update(path string, change func(*Book) bool) (*Book, error) {
	if err := makeFolder(path); err != nil {
		return nil, err
	}
	unlock, err := files.Lock(path)
	if err != nil {
		return nil, fmt.Errorf("wisdom: %w", err)
	}
	defer unlock()
	b, err := Read(path)
	if err != nil {
		return nil, err
	}
	if change(b) {
		err = b.Write(path)
	}
	return b, err
}

// Keep puts entries into the book at path, from which b was read, and sets b to the new content.
// Entries that others wrote there since then stay, unless they are the same and older.
func (b *Book) Keep(path string, entries ...Entry) error {
	now, err := Update(path, func(now *Book) bool {
		for _, e := range entries {
			was, is := b.on(&e), now.on(&e)
			if others := is != nil && (was == nil || !is.Time.Equal(was.Time)); !others || !is.Time.After(e.Time) {
				now.Put(e)
			}
		}
		return true
	})
	if err == nil {
		*b = *now
	}
	return err
}

// Writable returns an error if a book could not be written to path. It creates the folder.
func Writable(path string) error {
	if err := makeFolder(path); err != nil {
		return err
	}
	if err := files.Writable(path); err != nil {
		return fmt.Errorf("wisdom: %w", err)
	}
	return nil
}

// makeFolder creates the folder of the book at path.
func makeFolder(path string) error {
	to, err := files.Resolve(path)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o777)
	}
	if err != nil {
		return fmt.Errorf("wisdom: cannot write %s: %w", path, err)
	}
	return nil
}
