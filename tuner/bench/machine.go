package bench

import (
	"errors"
	"os"
	"path/filepath"

	"rnnbench/model"
	"rnnbench/tuner/probe"
)

// MeasureMachine measures the device's memories and barriers for the model.
func (b *Hardware) MeasureMachine() (err error) {
	defer b.tell.BusyNow("measuring the memories and barriers of " + b.Info.Name)()
	b.Machine, err = probe.Machine(b.Device)
	return err
}

// MachineChanges measures the machine again. It returns findings on what changed since
// MeasureMachine.
func (b *Hardware) MachineChanges() ([]string, error) {
	if b.Machine == nil {
		return nil, nil
	}
	now, err := probe.Machine(b.Device)
	if err != nil {
		return nil, err
	}
	return probe.Moved(b.Machine, now), nil
}

// FloorMachine returns the machine for floors without measuring: the one that was measured before,
// a GPU's built-in one, or the one that doctor saved for this processor; nil: there is none.
func (b *Hardware) FloorMachine() *model.Machine {
	if b.Machine != nil {
		return b.Machine
	}
	if b.Info.Name != "cpu" {
		m, err := model.Find(b.Info.Model)
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

// SaveMachine saves the machine's description for later sweeps. One that is unsure never replaces
// one that is not.
func (b *Hardware) SaveMachine() {
	path := b.savedPath(".toml")
	if path == "" || b.Machine == nil {
		return
	}
	if before, err := model.Load(path); err == nil && len(before.Unsure) < len(b.Machine.Unsure) {
		return
	}
	if text, err := b.Machine.Format(); err == nil {
		save(path, text)
	}
}

// MachinesFolder returns the folder where doctor saves machines; "": the user has no cache
// folder. Tests replace it.
var MachinesFolder = func() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "rnnbench", "machines")
}

// ErrNoMachine is the error for a device that cannot measure its memories for the model.
var ErrNoMachine = errors.New("this device cannot measure its memories: name a machine (rnnbench model --help)")
