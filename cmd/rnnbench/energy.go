package main

import (
	"fmt"

	"rnnbench/results"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
)

// tellEnergy says early that energy is asked for and cannot be counted.
func tellEnergy(p *program, b *bench, m config.Measure) {
	if !m.Energy {
		return
	}
	if err := tuner.NeedsMeter(b.Device); err != nil {
		p.warn("no energy will be counted: %v", err)
	}
}

// objectiveTime is the value of --objective for the usual one.
const objectiveTime = "time"

// objective is --objective as wisdom has it.
func (s *settings) objective() string {
	if s.least == results.OfEnergy {
		return s.least
	}
	return ""
}

// canCount finds that a tune for energy has no counter. A dry run needs none, and says so.
func (f *tuneFlags) canCount(p *program, b *bench) error {
	if f.objective() == "" {
		return nil
	}
	err := tuner.NeedsMeter(b.Device)
	if err == nil {
		return nil
	}
	if f.dryRun {
		p.warn("this tune cannot run here, since energy cannot be counted: %v", err)
		return nil
	}
	return &failure{exitNoDevice, fmt.Errorf("--objective energy: energy cannot be counted: %w", err), "omit --objective to tune for time"}
}

// kind tells plans of tune apart that have the same points. Shards and resumed runs must agree in it.
func (f *tuneFlags) kind() string {
	kind := "tune --depth " + f.depth
	if f.objective() != "" {
		kind += " --objective " + f.objective()
	}
	return kind
}

// rounds is how many samples a candidate has that stays to the end. Those of energy are long.
func (f *tuneFlags) rounds(m config.Measure) int {
	if f.objective() != "" && f.values["max-rounds"].list == nil {
		return min(m.MaxRounds, tuner.EnergyRounds)
	}
	return m.MaxRounds
}

// switches hands on the flags that are short for a setting.
func (f *sweepFlags) switches() {
	if f.noVerify {
		f.values["verify"] = &texts{list: []string{"off"}}
	}
	if f.energy {
		f.values["energy"] = &texts{list: []string{"on"}}
	}
}
