package train

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"codeberg.org/sbinet/npyio/npz"

	"rnnbench/results/files"
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
}

func (t *Trainer) about() about {
	return about{checkpointVersion, t.Problem.String(), t.Optimizer.String(), t.iterations, t.took.Seconds()}
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
	arrays := []torch.Array{numbers(aboutArray, text), numbers(positionArray, t.position)}
	for _, name := range slices.Sorted(maps.Keys(t.kept(t.replica))) {
		values, cols, err := t.gather(name)
		if err != nil {
			return err
		}
		arrays = append(arrays, torch.Array{Name: name, Shape: []int{len(values) / cols, cols}, Values: values})
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

// Load continues from a checkpoint of the same network and optimiser, bit for bit.
func (t *Trainer) Load(path string) error {
	if err := intact(path); err != nil {
		return fmt.Errorf("checkpoint %s cannot be read: %w", path, err)
	}
	r, err := npz.Open(path)
	if err != nil {
		return fmt.Errorf("checkpoint %s cannot be read: %w", path, err)
	}
	defer r.Close()
	position, err := t.load(r)
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", path, err)
	}
	t.feed.close()
	err = t.Source.Restore(position)
	t.position = t.Source.State()
	t.feed, t.staged = feedOf(t), nil
	if err != nil {
		return fmt.Errorf("checkpoint %s: its position in the data: %w", path, err)
	}
	return nil
}

// intact checks the checksums of all arrays. Reading a part of an array does not.
func intact(path string) error {
	z, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		r, err := f.Open()
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil {
			return fmt.Errorf("array %s: %w", strings.TrimSuffix(f.Name, ".npy"), err)
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

// load checks that the checkpoint is of this network, writes all arrays to the device, and returns
// the position of the source.
func (t *Trainer) load(r *npz.Reader) ([]byte, error) {
	text, err := bytesOf(r, aboutArray)
	if err != nil {
		return nil, err
	}
	was, want := about{}, t.about()
	if err := json.Unmarshal(text, &was); err != nil {
		return nil, fmt.Errorf("it does not say which network it is of: %w", err)
	}
	switch {
	case was.Version != checkpointVersion:
		return nil, fmt.Errorf("it is of version %d, and this program reads version %d", was.Version, checkpointVersion)
	case was.Problem != want.Problem:
		return nil, fmt.Errorf("it is of another network: %s, not %s", was.Problem, want.Problem)
	case was.Optimizer != want.Optimizer:
		return nil, fmt.Errorf("it was trained by %s, not by %s", was.Optimizer, want.Optimizer)
	}
	values := map[string][]float32{}
	for name := range t.kept(t.replica) {
		var v []float32
		if err := read(r, name, &v); err != nil {
			return nil, err
		}
		if want := t.values(name); len(v) != want {
			return nil, fmt.Errorf("array %s has %d values, not %d", name, len(v), want)
		}
		values[name] = v
	}
	position, err := bytesOf(r, positionArray)
	if err != nil {
		return nil, err
	}
	if err := t.scatter(values); err != nil {
		return nil, err
	}
	t.ready = true
	t.iterations, t.took = was.Iterations, time.Duration(was.Seconds*float64(time.Second))
	return position, nil
}

func bytesOf(r *npz.Reader, name string) ([]byte, error) {
	var v []int64
	if err := read(r, name, &v); err != nil {
		return nil, err
	}
	out := make([]byte, len(v))
	for i, n := range v {
		if n < 0 || n > 255 {
			return nil, fmt.Errorf("array %s holds %d, which is no byte", name, n)
		}
		out[i] = byte(n)
	}
	return out, nil
}

// read reads an array. A broken file is an error, even where the library panics.
func read(r *npz.Reader, name string, into any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("array %s is broken: %v", name, p)
		}
	}()
	if !slices.ContainsFunc(r.Keys(), func(k string) bool { return strings.TrimSuffix(k, ".npy") == name }) {
		return fmt.Errorf("it has no array %s", name)
	}
	if err := r.Read(name+".npy", into); err != nil {
		return errors.Join(fmt.Errorf("array %s cannot be read", name), err)
	}
	return nil
}
