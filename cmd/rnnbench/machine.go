package main

import (
	"errors"
	"fmt"

	"rnnbench/device"
	"rnnbench/model"
)

// measureMachine finds what the memories and workers of the device give each
// other, as far as it can tell.
func (b *bench) measureMachine() error {
	prober, ok := b.Device.(device.Prober)
	if !ok {
		return nil
	}
	h, err := prober.Hierarchy()
	if err != nil {
		return err
	}
	b.machine = machineOf(b.info, h)
	return b.machine.Check()
}

// errNoMachine says that a device cannot describe itself to a model.
var errNoMachine = errors.New("the device does not measure its memories: name a machine (rnnbench model --help)")

// machineOf is a hierarchy in the model's terms: each level of memory one
// module, the first shared one of which holds the workers.
//
// Of a private cache three quarters can keep weights, since states and inputs
// pass through it as well; of a shared one half, since neighbours use it too.
func machineOf(info device.Info, h device.Hierarchy) *model.Machine {
	n := float64(info.Workers)
	m := &model.Machine{
		Name: info.Model, Source: fmt.Sprintf("measured with %d workers and %s", info.Workers, info.Libraries["simd"]),
		FLOPS: n * h.Product, Pointwise: n * h.Pointwise,
	}
	inside := false // a level below holds the workers
	for i, x := range h.Memories {
		l := model.Level{Name: x.Name, P: 1, B: x.PerCore, M: 0.75 * float64(x.Bytes)}
		if x.Shared {
			l.B *= n
			l.M = float64(x.Bytes)
			if i < len(h.Memories)-1 {
				l.M /= 2
			}
		}
		if x.Shared && !inside {
			l.P, l.C, l.X = info.Workers, h.Barrier, n*h.Exchange
			inside = true
		}
		m.Levels = append(m.Levels, l)
	}
	return m
}
