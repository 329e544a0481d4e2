package main

import (
	"errors"
	"os"
	"path/filepath"

	"rnnbench/model"
	"rnnbench/tuner/probe"
)

// measureMachine measures the device's memories and barriers for the model.
func (b *bench) measureMachine() (err error) {
	b.machine, err = probe.Machine(b.Device)
	return err
}

// machineChanges measures the machine again. It returns findings on what changed since
// measureMachine.
func (b *bench) machineChanges() ([]string, error) {
	if b.machine == nil {
		return nil, nil
	}
	now, err := probe.Machine(b.Device)
	if err != nil {
		return nil, err
	}
	return probe.Moved(b.machine, now), nil
}

// floorMachine returns the machine for floors without measuring: the one that was measured before,
// a GPU's built-in one, or the one that doctor saved for this processor; nil: there is none.
func (b *bench) floorMachine() *model.Machine {
	if b.machine != nil {
		return b.machine
	}
	if b.info.Name != "cpu" {
		m, err := model.Find(b.info.Model)
		if err != nil {
			return nil
		}
		return m
	}
	path := b.savedPath(".toml")
	if path == "" {
		return nil
	}
	m, err := model.Load(path)
	if err != nil || len(m.Unsure) > 0 { // it was never saved, or another version of the program saved it
		return nil
	}
	return m
}

// saveMachine saves the machine's description for later sweeps. One that is unsure never replaces
// one that is not.
func (b *bench) saveMachine() {
	path := b.savedPath(".toml")
	if path == "" || b.machine == nil {
		return
	}
	if before, err := model.Load(path); err == nil && len(before.Unsure) < len(b.machine.Unsure) {
		return
	}
	if text, err := b.machine.Format(); err == nil {
		save(path, text)
	}
}

// machinesFolder returns the folder where doctor saves machines; "": the user has no cache
// folder. Tests replace it.
var machinesFolder = func() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "rnnbench", "machines")
}

// errNoMachine is the error for a device that cannot measure its memories for the model.
var errNoMachine = errors.New("this device cannot measure its memories: name a machine (rnnbench model --help)")
