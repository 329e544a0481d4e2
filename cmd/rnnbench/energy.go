package main

import (
	"fmt"

	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
)

// tellEnergy warns, before measuring, that the requested energy cannot be counted.
func tellEnergy(p *program, b *bench, m config.Measure) {
	if !m.Energy {
		return
	}
	if err := tuner.NeedsMeter(b.Device); err != nil {
		p.warn("no energy will be counted: %v", err)
	}
}

// objectiveTime is the default of --objective.
const objectiveTime = "time"

// objective returns --objective as wisdom stores it: "" for time.
func (s *settings) objective() string {
	if s.least == record.OfEnergy {
		return s.least
	}
	return ""
}

// checkEnergyCounter returns an error if a tune for energy has no counter. A dry run gets a warning
// instead.
func (f *tuneFlags) checkEnergyCounter(p *program, b *bench) error {
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

// kind distinguishes tune plans over the same points. Shards and resumed runs must have the same kind.
func (f *tuneFlags) kind() string {
	kind := "tune --depth " + f.depth
	if f.objective() != "" {
		kind += " --objective " + f.objective()
	}
	return kind
}

// rounds returns the most samples of a candidate. Samples of energy are long, so the default is
// lower for them.
func (f *tuneFlags) rounds(m config.Measure) int {
	if f.objective() != "" && f.values["max-rounds"].list == nil {
		return min(m.MaxRounds, tuner.EnergyRounds)
	}
	return m.MaxRounds
}

// applySwitches turns --no-verify and --energy into the settings that they abbreviate.
func (f *sweepFlags) applySwitches() {
	if f.noVerify {
		f.values["verify"] = &texts{list: []string{"off"}}
	}
	if f.energy {
		f.values["energy"] = &texts{list: []string{"on"}}
	}
}
