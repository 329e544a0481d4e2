package campaign

import (
	"log/slog"
	"os"
	"path/filepath"

	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
)

// A Memory holds the records of earlier runs that are valid in the current environment.
type Memory struct {
	Measure     config.Measure
	RetryFailed bool // failed records do not count as known
	Objective   string
	Device      string
	Libraries   map[string]string
	Tool        record.Tool
	Log         *slog.Logger

	known map[string]*record.Record
}

// add adds records that were measured in the same way. It keeps the newest of each key.
func (y *Memory) add(recs []record.Record) {
	if y.known == nil {
		y.known = map[string]*record.Record{}
	}
	for i := range recs {
		r, m := &recs[i], &y.Measure
		if y.RetryFailed && r.Status.Broken() {
			continue
		}
		if r.Mode.Objective != y.Objective || r.Mode.Cache != m.Cache || r.Mode.Data != m.Data || r.Mode.Seed != m.Seed {
			continue
		}
		if old := y.known[r.Key()]; old == nil || tuner.Supersedes(r, old) {
			y.known[r.Key()] = r
		}
	}
}

// Read adds the records of one run, whatever its environment.
func (y *Memory) Read(run string) error {
	_, recs, _, err := record.Read(run)
	if err == nil {
		y.add(recs)
	}
	return err
}

// ReadAll adds the records of all runs in dir that were made in the same environment. It ignores
// runs that cannot be read.
func (y *Memory) ReadAll(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil { // there are no runs yet
		return
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		m, recs, _, err := record.Read(filepath.Join(dir, e.Name()))
		if err != nil || !y.holds(m) {
			continue
		}
		y.Log.Debug("known", "run", m.Run, "records", len(recs))
		y.add(recs)
	}
}

// Records returns the known records by key.
func (y *Memory) Records() map[string]*record.Record { return y.known }

// holds reports whether a run's records are valid here: the device, its libraries and the program are
// the same.
func (y *Memory) holds(m record.Manifest) bool {
	if len(m.Devices) == 0 || m.Devices[0].Key != y.Device {
		return false
	}
	for name, v := range y.Libraries {
		if m.Devices[0].Facts[name] != v {
			return false
		}
	}
	was, is := m.Environment.Tool, y.Tool
	return was.Version == is.Version && was.Revision == is.Revision
}
