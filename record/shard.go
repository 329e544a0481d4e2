package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"rnnbench/record/files"
)

// A Shard is the part of a plan that one of several runs measures. All runs divide the plan in the
// same way, so shards need not communicate.
type Shard struct {
	Index   int    `json:"index"` // from 1
	Count   int    `json:"count"`
	Of      string `json:"of"`      // name of the run that all shards form together
	Points  int    `json:"points"`  // of the whole plan
	Records int    `json:"records"` // of the whole plan
	Own     int    `json:"own"`     // points that no other shard has
	Tune    bool   `json:"tune"`    // its points are tuned, so its records are not known in advance
	Control Point  `json:"control"` // the point that every shard measures, to compare nodes

	// Trained says that the whole plan is trained. Then every shard times the pass of the control
	// point, only for comparison. Limits are the limits by which the plan was divided.
	Trained  bool          `json:"trained,omitempty"`
	Networks int           `json:"networks,omitempty"` // that the shard trains
	Limits   *TrainingPlan `json:"limits,omitempty"`

	// Numbers says which job of a scheduler's array is which shard; absent: the command line named the
	// shard.
	Numbers *Numbers `json:"numbers,omitempty"`
}

// Numbers are the numbers of the jobs of an array that measures the shards of a plan.
type Numbers struct {
	From  string `json:"from"`  // variable with a job's number
	First int    `json:"first"` // number of the job that measures shard 1
	Step  int    `json:"step"`  // from one job's number to the next, at least 1
}

// Place is the index of the shard that the job with a number measures; 0: none.
func (n Numbers) Place(number int) int {
	if n.Step < 1 || number < n.First || (number-n.First)%n.Step != 0 {
		return 0
	}
	return (number-n.First)/n.Step + 1
}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

// controlShard is the shard that the control point belongs to.
const controlShard = 1

// Extra reports whether the shard measures p only to compare nodes, since p belongs to another shard.
func (s Shard) Extra(p Point) bool {
	return s.Index != controlShard && p.Place() == s.Control.Place()
}

// Compares reports whether a record of the shard serves only to compare nodes.
func (s Shard) Compares(r *Record) bool {
	return r.Training == nil && (s.Trained || s.Extra(r.Point))
}

// A BusyError says that another process is writing a run.
type BusyError struct {
	Dir string
	Who string // "process 123"
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("record: %s is being written by %s: wait for it, or start a new run", e.Dir, e.Who)
}

// busy names the process that writes the run in dir.
func busy(dir string) error {
	who := "another process"
	if m, err := readManifest(filepath.Join(dir, manifestFile)); err == nil {
		who = fmt.Sprintf("process %d", m.PID)
	}
	return &BusyError{dir, who}
}

// lock locks f. It waits a moment, since Writing holds the lock for an instant.
func lock(f *os.File) error {
	const tries, pause = 5, 20 * time.Millisecond
	for i := 1; ; i++ {
		err := files.TryLock(f)
		if i == tries || !errors.Is(err, files.ErrLocked) {
			return err
		}
		time.Sleep(pause)
	}
}

// Writing reports whether a process is writing the run in dir.
func Writing(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, recordsFile), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(files.TryLock(f), files.ErrLocked)
}

// Claim opens the run called name in dir, or creates it if nothing was measured yet. Of several
// processes that claim a run at the same time, all but one get a *BusyError.
func Claim(dir, name string, m Manifest) (*Run, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("record: cannot make the folder %s: %w", dir, err)
	}
	path := filepath.Join(dir, name)
	unlock, err := files.Lock(path)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	defer unlock()
	if exists(filepath.Join(path, manifestFile)) {
		return Resume(path)
	}
	// A process that was killed early leaves an empty folder.
	if info, err := os.Stat(filepath.Join(path, recordsFile)); err == nil && info.Size() > 0 {
		return nil, fmt.Errorf("record: %s holds records without a manifest: move it away", path)
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, fmt.Errorf("record: cannot write to the folder %s: %w", dir, err)
	}
	fillNew(&m)
	m.Run = name
	return start(dir, path, os.O_CREATE, m, true)
}

// On sets the machine that is written into every record appended from now on.
func (r *Run) On(node Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node = &node
}

// WisdomFile is the name of the file in a run's folder with the winners of a tune's shard.
const WisdomFile = "wisdom.toml"

// ShardFolder is the name of the run that measures shard s. It is always the same, so a restarted job
// continues its run.
func ShardFolder(s Shard) string {
	return fmt.Sprintf("%s-%0*d-of-%d", s.Of, len(fmt.Sprint(s.Count)), s.Index, s.Count)
}

// ShardsOf returns the manifests of the shards in dir that have the same plan, label and device, by
// their folders. Nothing else says that runs belong together, neither their names nor a scheduler. It
// ignores folders without a readable manifest.
func ShardsOf(dir, hash, label, device string) map[string]Manifest {
	found := map[string]Manifest{}
	entries, _ := os.ReadDir(dir) // without a folder there are none
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.IsDir() || !HasManifest(path) {
			continue
		}
		if m, err := ReadManifest(path); err == nil && m.Scope.Shard != nil && m.Scope.Hash == hash && m.Label == label && len(m.Devices) > 0 && m.Devices[0].Key == device {
			found[path] = m
		}
	}
	return found
}

// Slug reduces words to a name that every file system accepts.
func Slug(s string) string { return slug(s) }

// Records reads the run's records so far.
func (r *Run) Records() ([]Record, error) {
	_, recs, _, err := Read(r.dir)
	return recs, err
}
