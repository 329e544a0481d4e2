package cluster

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"rnnbench/internal/input"
)

// A Node is what a job finds on its machine.
type Node struct {
	Name    string `json:"node"`
	Shard   string `json:"shard"`
	Device  string `json:"device"`  // key
	Version string `json:"version"` // of rnnbench
}

// deviceFile is the file in a group's folder with the device that the group measures on: that of
// the shard that began first.
const deviceFile = "device.json"

// SameVersion refuses a node whose rnnbench has another version than the submitter's.
func (n Node) SameVersion(submitted string) error {
	if n.Version != submitted {
		return fmt.Errorf("the job was submitted by rnnbench %s, but node %s has rnnbench %s", submitted, n.Name, n.Version)
	}
	return nil
}

// SameDevice refuses a node whose device is not the submitted one, or not that of the shard that
// began first in dir.
func (n Node) SameDevice(dir, submitted string) error {
	if submitted != "" && n.Device != submitted {
		return fmt.Errorf("the job was submitted for device %s, but node %s has %s", submitted, n.Name, n.Device)
	}
	first, err := n.pin(dir)
	if err != nil {
		return fmt.Errorf("cannot say which device the shards in %s measure on: %w", dir, err)
	}
	if n.Device != first.Device {
		return fmt.Errorf("shard %s began on device %s of node %s, but node %s has %s", first.Shard, first.Device, first.Name, n.Name, n.Device)
	}
	return nil
}

// pin is the node that began first in dir: n, if there was no other.
func (n Node) pin(dir string) (Node, error) {
	path := filepath.Join(dir, deviceFile)
	text, err := input.ReadFile(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		if err := n.write(dir, path); err != nil && !errors.Is(err, fs.ErrExist) {
			return Node{}, err
		}
		text, err = input.ReadFile(path, maxFile)
	}
	if err != nil {
		return Node{}, err
	}
	var first Node
	err = json.Unmarshal(text, &first)
	return first, err
}

// write creates the file at path, whole, unless it exists.
func (n Node) write(dir, path string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, deviceFile+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	err = os.Link(f.Name(), path) // fails if another job was faster
	if err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Stat(path); there == nil {
			return fs.ErrExist
		}
		return os.Rename(f.Name(), path) // for a file system without links
	}
	return err
}

// ThisNode returns this machine's name, as its scheduler gives it. With hide, or without a name, it
// returns a hash that only tells machines apart.
func ThisNode(hide bool) string {
	name := os.Getenv("SLURMD_NODENAME")
	if name == "" && os.Getenv("JOB_COMPLETION_INDEX") != "" {
		name = os.Getenv("NODE_NAME")
	}
	if name == "" {
		name, _ = os.Hostname() // "": the machine has no name
	}
	if hide || name == "" {
		return fmt.Sprintf("node-%x", sha256.Sum256([]byte("rnnbench "+name)))[:len("node-")+6]
	}
	return name
}
