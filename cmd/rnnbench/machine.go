package main

import (
	"errors"
	"os"
	"path/filepath"

	"rnnbench/model"
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

// known is the machine that floors are computed for: as measured now, as the program knows it,
// or as doctor kept it. It is nil where none is. It measures nothing.
func (b *bench) known() *model.Machine {
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
	path := b.keptMachine()
	if path == "" {
		return nil
	}
	m, err := model.Load(path)
	if err != nil { // it was never kept, or another version of the program kept it
		return nil
	}
	return m
}

// keep keeps the machine for sweeps of later. That it cannot be kept is no error.
func (b *bench) keep() {
	path := b.keptMachine()
	if path == "" || b.machine == nil || b.info.Name != "cpu" {
		return
	}
	text, err := b.machine.Format()
	if err != nil {
		return
	}
	if os.MkdirAll(filepath.Dir(path), 0o777) == nil {
		_ = os.WriteFile(path, text, 0o666)
	}
}

// keptMachine is the file that keeps the machine with these workers and instructions; "": none.
func (b *bench) keptMachine() string {
	dir := machinesFolder()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, b.info.Key+"-"+b.info.Libraries["simd"]+".toml")
}

// machinesFolder is the folder that doctor keeps machines in; "": none. Tests have their own.
var machinesFolder = func() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "rnnbench", "machines")
}

// errNoMachine says that a device cannot describe itself to a model.
var errNoMachine = errors.New("this device cannot measure its memories: name a machine (rnnbench model --help)")
