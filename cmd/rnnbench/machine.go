package main

import (
	"errors"

	"rnnbench/tuner/probe"
)

// measureMachine finds what the memories and workers of the device give each
// other.
func (b *bench) measureMachine() (err error) {
	b.machine, err = probe.Machine(b.Device)
	return err
}

// moved measures the machine once more and says if it is no longer the one that
// it was.
func (b *bench) moved() ([]string, error) {
	if b.machine == nil {
		return nil, nil
	}
	now, err := probe.Machine(b.Device)
	if err != nil {
		return nil, err
	}
	return probe.Moved(b.machine, now), nil
}

// errNoMachine says that a device cannot describe itself to a model.
var errNoMachine = errors.New("this device cannot measure its memories: name a machine (rnnbench model --help)")
