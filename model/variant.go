package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Variant is a change of a machine, as in section 5.1.4 of Diamos et al.
type Variant struct {
	Name string
	Doc  string
	Half bool // products in 16 bits
	// change alters the machine, whose levels are its own.
	change func(m *Machine)
}

// Variants lists the unchanged machine and the five of Figure 6.
//
// A second set of multiprocessors makes the chip larger, so synchronisation and latency grow with
// the distances on it, by √2 where the area doubles. Section 3.1: costs are functions of "the
// physical dimensions of and distances between processor cores". The memory that all share stays as
// fast as it is.
func Variants() []Variant {
	return []Variant{
		{Name: "base", Doc: "the unchanged machine", change: func(*Machine) {}},
		{Name: "registers", Doc: "twice the memory in each multiprocessor or core", change: func(m *Machine) {
			for i := range m.Private() {
				m.Levels[i].M *= 2
			}
		}},
		{Name: "cores", Doc: "twice the multiprocessors", change: func(m *Machine) {
			l := &m.Levels[m.Private()]
			l.P *= 2
			l.C *= math.Sqrt2
			l.L *= math.Sqrt2
			m.FLOPS *= 2
			m.Pointwise *= 2
		}},
		{Name: "half", Doc: "all arithmetic in 16 bits, at twice the rate", Half: true, change: func(m *Machine) {
			m.Half = max(m.Half, 2)
		}},
		{Name: "dram", Doc: "twice the main memory bandwidth", change: func(m *Machine) {
			m.Levels[len(m.Levels)-1].B *= 2
		}},
		{Name: "latency", Doc: "half the memory latency", change: func(m *Machine) {
			for i := range m.Levels {
				m.Levels[i].L /= 2
			}
			if m.GPU != nil {
				m.GPU.Push /= 2
			}
		}},
	}
}

// VariantNames lists the variants by name.
func VariantNames() []string {
	var names []string
	for _, v := range Variants() {
		names = append(names, v.Name)
	}
	return names
}

// LookupVariant returns the variant of that name.
func LookupVariant(name string) (Variant, error) {
	all := Variants()
	if i := slices.IndexFunc(all, func(v Variant) bool { return v.Name == name }); i >= 0 {
		return all[i], nil
	}
	return Variant{}, fmt.Errorf("model: unknown variant %q: choose among %s", name, strings.Join(VariantNames(), ", "))
}

// Of returns a copy of m with the change.
func (v Variant) Of(m *Machine) *Machine {
	changed := *m
	changed.Levels = slices.Clone(m.Levels)
	if m.GPU != nil {
		gpu := *m.GPU
		changed.GPU = &gpu
	}
	v.change(&changed)
	return &changed
}

// Bytes is the size of a weight under v, where it is otherwise so large.
func (v Variant) Bytes(usual float64) float64 {
	if v.Half {
		return 2
	}
	return usual
}
