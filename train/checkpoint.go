package train

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"rnnbench/internal/input"
	"rnnbench/record"
	"rnnbench/record/files"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
	"rnnbench/rnn/torch"
)

// A checkpoint is an .npz file: an array for each parameter, moment and carried state, and two
// arrays of bytes, one byte to a number. NumPy can read it.
const (
	aboutArray    = "about"    // JSON
	positionArray = "position" // of the source
)

// checkpointVersion changes with the meaning of a checkpoint.
const checkpointVersion = 1

// about identifies a checkpoint.
type about struct {
	Version    int     `json:"version"`
	Problem    string  `json:"problem"`
	Optimizer  string  `json:"optimizer"`
	Iterations int     `json:"iterations"`
	Seconds    float64 `json:"seconds"`

	Taken []record.Taken `json:"taken,omitempty"` // see record.Convergence
}

func (t *Trainer) about() about {
	return about{checkpointVersion, t.Problem.String(), t.Optimizer.String(), t.iterations, t.took.Seconds(), t.solver.taken}
}

// rows is the number of m's first rows that a checkpoint keeps. Of a state it keeps those before
// the first step; of a matrix kept from run to run, the history's steps.
func (r replica) rows(name string, m *schedule.Matrix) int {
	for _, k := range r.plan.Kept() {
		if k.Matrix == m {
			return k.Rows(r.plan.Problem)
		}
	}
	if r.perReplica(name) {
		return rnn.FirstRows(r.plan, m)
	}
	return m.Rows
}

// Save writes a whole checkpoint, or none.
func (t *Trainer) Save(path string) error {
	if err := t.fillHistory(); err != nil {
		return err
	}
	text, err := json.Marshal(t.about())
	if err != nil {
		return err
	}
	values, err := gatherAll(t)
	if err != nil {
		return err
	}
	arrays := []torch.Array{numbers(aboutArray, text), numbers(positionArray, t.position)}
	kept := t.kept(t.replica)
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		cols := kept[name].Cols
		arrays = append(arrays, torch.Array{Name: name, Shape: []int{len(values[name]) / cols, cols}, Values: values[name]})
	}
	if err := files.Write(path, func(w io.Writer) error { return torch.WriteNPZ(w, arrays) }); err != nil {
		return fmt.Errorf("checkpoint %s: %w", path, err)
	}
	return nil
}

// numbers is an array of bytes, one byte to a number.
func numbers(name string, bytes []byte) torch.Array {
	values := make([]int64, len(bytes))
	for i, b := range bytes {
		values[i] = int64(b)
	}
	return torch.Array{Name: name, Shape: []int{len(values)}, Values: values}
}

// Load continues from a checkpoint of the same network and optimiser, bit for bit. The file need not
// be trusted: no more is read than the network has room for.
func (t *Trainer) Load(path string) error {
	f, err := input.Open(path)
	if err != nil {
		return fmt.Errorf("checkpoint %s cannot be read: %w", path, files.Cause(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("checkpoint %s cannot be read: %w", path, files.Cause(err))
	}
	position, err := t.load(f, info.Size())
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", path, err)
	}
	if err := seek(t, position); err != nil {
		return fmt.Errorf("checkpoint %s: its position in the data: %w", path, err)
	}
	return nil
}

// seek has t's next minibatch be the one at a position of the source.
func seek(t *Trainer, position []byte) error {
	t.feed.close()
	err := t.Source.Restore(position)
	t.position = t.Source.State()
	t.feed, t.staged = feedOf(t), nil
	return err
}

// Bounds of what a checkpoint says. A longer training, or another source, is no reason to raise them.
const (
	maxAbout      = 1 << 16 // bytes
	maxPosition   = 1 << 16 // bytes
	maxIterations = 1 << 30
	maxSeconds    = 1e10 // three centuries
)

// Saved is the number of iterations after which the checkpoint at path was saved.
func Saved(path string) (int, error) {
	f, err := input.Open(path)
	if err != nil {
		return 0, files.Cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, files.Cause(err)
	}
	was, err := readAbout(f, info.Size())
	return was.Iterations, err
}

// readAbout reads what a checkpoint says of itself.
func readAbout(r io.ReaderAt, size int64) (about, error) {
	was := about{}
	text, err := torch.ReadBytes(r, size, aboutArray, maxAbout)
	if err != nil {
		return was, fmt.Errorf("it cannot be read: %w", err)
	}
	if err := json.Unmarshal(text, &was); err != nil {
		return was, fmt.Errorf("it does not say which network it is of: %w", err)
	}
	switch {
	case was.Version != checkpointVersion:
		return was, fmt.Errorf("it is of version %d, and this program reads version %d", was.Version, checkpointVersion)
	case was.Iterations < 0 || was.Iterations > maxIterations:
		return was, fmt.Errorf("it is damaged: it counts %d iterations", was.Iterations)
	case was.Seconds < 0 || was.Seconds > maxSeconds:
		return was, fmt.Errorf("it is damaged: it says that training took %g seconds", was.Seconds)
	}
	return was, nil
}

// load checks that the checkpoint is of this network, writes all arrays to the device, and returns
// the position of the source.
func (t *Trainer) load(r io.ReaderAt, size int64) ([]byte, error) {
	was, err := readAbout(r, size)
	if err != nil {
		return nil, err
	}
	switch want := t.about(); {
	case was.Problem != want.Problem:
		return nil, fmt.Errorf("it is of another network: %s, not %s", was.Problem, want.Problem)
	case was.Optimizer != want.Optimizer:
		return nil, fmt.Errorf("it was trained by %s, not by %s", was.Optimizer, want.Optimizer)
	}
	values := map[string][]float32{}
	var places []torch.Place
	for name, m := range t.kept(t.replica) {
		values[name] = make([]float32, t.values(name))
		places = append(places, torch.Place{Name: name, Shape: []int{len(values[name]) / m.Cols, m.Cols}, Values: values[name]})
	}
	if err := torch.ReadNPZ(r, size, places); err != nil {
		return nil, err
	}
	position, err := torch.ReadBytes(r, size, positionArray, maxPosition)
	if err != nil {
		return nil, err
	}
	if err := t.solver.resume(was.Taken); err != nil {
		return nil, err
	}
	if err := t.scatter(values); err != nil {
		return nil, err
	}
	t.ready = true
	t.iterations, t.took = was.Iterations, time.Duration(was.Seconds*float64(time.Second))
	return position, nil
}
