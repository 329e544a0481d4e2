package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnnbench/device"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// placeOf names the processors and the time that this process may use: with others, a device has
// other limits.
func placeOf(env record.Environment) string {
	c := env.CPU
	place := c.Model + "|" + c.Affinity
	if c.Quota != nil {
		place += fmt.Sprintf("|%g", *c.Quota)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(place)) // it never fails
	return fmt.Sprintf("%08x", h.Sum32())
}

// savedPath returns a file with what was measured of this processor with this number of threads,
// instruction set, affinity and quota; "": the user has no cache folder, or it is a GPU.
func (b *bench) savedPath(ending string) string {
	dir := machinesFolder()
	if dir == "" || b.info.Name != "cpu" {
		return ""
	}
	return filepath.Join(dir, b.info.Key+"-"+b.info.Libraries["simd"]+"-"+b.place+ending)
}

// save writes a file of savedPath. Failing to save is not an error.
func save(path string, text []byte) {
	if os.MkdirAll(filepath.Dir(path), 0o777) == nil {
		_ = os.WriteFile(path, text, 0o666)
	}
}

// recallLimits raises the limits to the best that were ever measured of this processor, and saves
// them: other programs only slow a measurement down. It notes what is far slower now.
func recallLimits(b *bench) {
	path := b.savedPath(".limits.json")
	if path == "" {
		return
	}
	var before device.Limits
	if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &before) != nil {
		before = device.Limits{} // another version of the program saved it
	}
	var slower []string
	recall := func(name string, is *float64, was float64, unit string) {
		if *is < was/2 {
			slower = append(slower, fmt.Sprintf("%s %s, %s before", name, quantity.SI(*is, unit), quantity.SI(was, unit)))
		}
		raise(&b.limits, name, is, was)
	}
	recall(device.LimitFLOPS, &b.limits.FLOPS, before.FLOPS, "FLOP/s")
	recall(device.LimitCopy, &b.limits.Copy, before.Copy, "B/s")
	for i := range b.limits.More {
		for _, r := range before.More {
			if now := &b.limits.More[i]; now.Name == r.Name && now.Unit == "FLOP/s" {
				recall(r.Name, &now.Value, r.Value, r.Unit)
			}
		}
	}
	b.slowed = strings.Join(slower, "; ")
	if text, err := json.Marshal(sureOf(b.limits)); err == nil {
		save(path, text)
	}
}

// raise raises a limit to what it was before, if that was higher. It is sure then.
func raise(l *device.Limits, name string, is *float64, was float64) {
	if *is < was {
		*is = was
		l.Unsure = slices.DeleteFunc(slices.Clone(l.Unsure), func(n string) bool { return n == name })
	}
}

// sureOf returns l without its limits that are unsure.
func sureOf(l device.Limits) device.Limits {
	unsure := l.Unsure
	l.More = slices.DeleteFunc(slices.Clone(l.More), func(r device.Rate) bool { return slices.Contains(unsure, r.Name) })
	if slices.Contains(unsure, device.LimitFLOPS) {
		l.FLOPS = 0
	}
	if slices.Contains(unsure, device.LimitCopy) {
		l.Copy = 0
	}
	l.Unsure = nil
	return l
}

// disturbed warns of limits that are unsure, and of those that were far higher before.
func disturbed(b *bench) []record.Advice {
	const remedy = "stop other programs, and measure again"
	var list []record.Advice
	if len(b.limits.Unsure) > 0 {
		list = append(list, record.Advice{Remedy: remedy,
			What: fmt.Sprintf("other programs or a quota disturbed the measurement of the machine's limits (%s): records are not compared with them", strings.Join(b.limits.Unsure, ", "))})
	}
	if b.machine != nil && len(b.machine.Unsure) > 0 {
		list = append(list, record.Advice{Remedy: remedy,
			What: fmt.Sprintf("other programs or a quota disturbed the measurement of the machine's memories and peaks (%s)", strings.Join(b.machine.Unsure, ", "))})
	}
	if b.slowed != "" {
		list = append(list, record.Advice{Remedy: remedy, What: "the machine is slower than before: " + b.slowed})
	}
	return list
}
