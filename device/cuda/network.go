package cuda

import (
	"errors"
	"fmt"

	"rnnbench/device/cuda/lower"
	"rnnbench/rnn/schedule"
)

// ready has the library ready the networks of s. Those of before are ready.
func (d *Device) ready(s *schedule.Schedule) error {
	for n, op := range lower.Networks(s) {
		if why := d.properties.NoNetworks; why != "" {
			return fmt.Errorf("cuda: %s: %w: %s", op.Name(), schedule.ErrLibrary, why)
		}
		if _, ok := d.networks[n]; ok {
			continue
		}
		id, sizes, err := d.driver.NewNetwork(n)
		if err != nil {
			return fmt.Errorf("cuda: %s: %w", op.Name(), err)
		}
		d.networks[n] = lower.Network{Id: id, Sizes: sizes}
	}
	return nil
}

// beginNetworks begins to ready the networks of s that are new, and reports
// whether there are any, old or new.
func (d *Device) beginNetworks(s *schedule.Schedule) (any bool) {
	for n := range lower.Networks(s) {
		any = true
		if _, ok := d.networks[n]; !ok && d.properties.NoNetworks == "" {
			d.driver.BeginNetwork(n)
		}
	}
	return any
}

// try runs p once where the library runs part of it, which says only then what
// it cannot do, and readies more of itself than it may while a graph is captured.
func (p *program) try() error {
	if lower.HasNetworks(p.schedule) {
		return errors.Join(p.issue(&p.run), p.settle(), p.clear())
	}
	return nil
}
