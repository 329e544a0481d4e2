package cuda

import (
	"errors"
	"fmt"

	"rnnbench/device/cuda/lower"
	"rnnbench/rnn/schedule"
)

// ready makes the library prepare the networks of s, unless they are prepared already.
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

// beginNetworks starts to prepare the new networks of s, and reports whether s has any networks,
// new or prepared.
func (d *Device) beginNetworks(s *schedule.Schedule) (any bool) {
	for n := range lower.Networks(s) {
		any = true
		if _, ok := d.networks[n]; !ok && d.properties.NoNetworks == "" {
			d.driver.BeginNetwork(n)
		}
	}
	return any
}

// try runs p once if the library runs part of it. Only then does the library say what it cannot do,
// and it makes preparations that are forbidden while a graph is captured.
func (p *program) try() error {
	if lower.HasNetworks(p.schedule) {
		return errors.Join(p.issue(&p.run), p.settle(), p.clear())
	}
	return nil
}
