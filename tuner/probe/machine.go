// Package probe measures the machine itself: its memories and barriers, in the model's
// terms, and its noise.
package probe

import (
	"fmt"

	"rnnbench/device"
	"rnnbench/model"
	"rnnbench/plots/quantity"
)

// Machine describes d's memories and workers for the model. If d cannot measure them, it returns
// the program's own description of d's model; nil: there is none.
func Machine(d device.Device) (*model.Machine, error) {
	var h device.Hierarchy
	if prober, ok := d.(device.Prober); ok {
		var err error
		if h, err = prober.Hierarchy(); err != nil {
			return nil, err
		}
	}
	if len(h.Memories) == 0 {
		return model.Find(d.Info().Model)
	}
	m := machineOf(d.Info(), h)
	return m, m.Check()
}

// Moved returns a warning if a barrier now takes much longer or shorter than before. A host may move
// the processors of a virtual machine apart, or together.
func Moved(before, after *model.Machine) []string {
	was, is := before.Barrier(), after.Barrier()
	if is < 1.5*was && was < 1.5*is || was == 0 {
		return nil
	}
	return []string{fmt.Sprintf("The machine changed during the run: a barrier took %s before and %s after. The host probably moved the virtual processors. Predictions of short steps hold for only some points.",
		quantity.SI(was, "s"), quantity.SI(is, "s"))}
}

// machineOf converts a hierarchy to the model's terms: each memory is a level, and the first shared
// one holds the workers.
//
// Three quarters of a private cache can keep weights, since states and inputs pass through it as
// well. Half of a shared cache can, since neighbours use it too. The last memory counts whole.
func machineOf(info device.Info, h device.Hierarchy) *model.Machine {
	n := float64(info.Workers)
	m := &model.Machine{
		Name: info.Model, Source: fmt.Sprintf("measured with %d workers and %s", info.Workers, info.Libraries["simd"]),
		Unsure: h.Unsure, FLOPS: n * h.Product, Half: h.Half, Pointwise: n * h.Pointwise,
	}
	inside := false // a nearer level holds the workers
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
	for _, x := range h.Meetings {
		m.Meetings = append(m.Meetings, model.Meeting{Parts: x.Workers, Seconds: x.Seconds})
	}
	if l := h.Replicas; l.Rate > 0 {
		m.Links = []model.Link{{Name: "shared memory", Source: "measured between two processes' shares of this machine", B: l.Rate, L: l.Seconds}}
	}
	return m
}
