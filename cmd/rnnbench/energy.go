package main

import (
	"rnnbench/device"
	"rnnbench/tuner/config"
)

// tellEnergy says early that energy is asked for and cannot be counted.
func tellEnergy(p *program, b *bench, m config.Measure) {
	if !m.Energy {
		return
	}
	meter, ok := b.Device.(device.PowerMeter)
	if !ok {
		p.warn("no energy will be counted: device %s has no meter", b.info.Name)
		return
	}
	if _, err := meter.Power(); err != nil {
		p.warn("no energy will be counted: %v", err)
	}
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
