package bench

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
func (b *Hardware) savedPath(ending string) string {
	dir := MachinesFolder()
	if dir == "" || b.Info.Name != "cpu" {
		return ""
	}
	return filepath.Join(dir, b.Info.Key+"-"+b.Info.Libraries["simd"]+"-"+b.place+ending)
}

// save writes a file of savedPath. Failing to save is not an error.
func save(path string, text []byte) {
	if os.MkdirAll(filepath.Dir(path), 0o777) == nil {
		_ = os.WriteFile(path, text, 0o666)
	}
}

// recallLimits raises the limits to the best that were ever measured of this processor, and saves
// them: other programs only slow a measurement down. It notes what is far slower now.
func (b *Hardware) recallLimits() {
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
		raise(&b.Limits, name, is, was)
	}
	recall(device.LimitFLOPS, &b.Limits.FLOPS, before.FLOPS, "FLOP/s")
	recall(device.LimitCopy, &b.Limits.Copy, before.Copy, "B/s")
	for i := range b.Limits.More {
		for _, r := range before.More {
			if now := &b.Limits.More[i]; now.Name == r.Name && now.Unit == "FLOP/s" {
				recall(r.Name, &now.Value, r.Value, r.Unit)
			}
		}
	}
	b.slowed = strings.Join(slower, "; ")
	if text, err := json.Marshal(sureOf(b.Limits)); err == nil {
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

// Disturbed warns of limits that are unsure, and of those that were far higher before.
func (b *Hardware) Disturbed() []record.Advice {
	const remedy = "stop other programs, and measure again"
	var list []record.Advice
	if len(b.Limits.Unsure) > 0 {
		list = append(list, record.Advice{Remedy: remedy,
			What: fmt.Sprintf("other programs or a quota disturbed the measurement of the machine's limits (%s): records are not compared with them", strings.Join(b.Limits.Unsure, ", "))})
	}
	if b.Machine != nil && len(b.Machine.Unsure) > 0 {
		list = append(list, record.Advice{Remedy: remedy,
			What: fmt.Sprintf("other programs or a quota disturbed the measurement of the machine's memories and peaks (%s)", strings.Join(b.Machine.Unsure, ", "))})
	}
	if b.slowed != "" {
		list = append(list, record.Advice{Remedy: remedy, What: "the machine is slower than before: " + b.slowed})
	}
	return list
}

// AtLeast raises the peaks to those of an earlier run, if they were higher: the machine may have been busy
// in either measurement.
func (b *Hardware) AtLeast(before *record.Manifest) {
	if before == nil {
		return
	}
	was := before.Devices[0]
	raise(&b.Limits, device.LimitFLOPS, &b.Limits.FLOPS, was.PeakRate())
	rates := was.ProductRates()
	for i := range b.Limits.More {
		r := &b.Limits.More[i]
		if precision, ok := strings.CutSuffix(r.Name, " products"); ok {
			raise(&b.Limits, r.Name, &r.Value, rates[precision])
		}
	}
}

// TakeLimits takes the peaks of an earlier run instead of measuring them, so that all records of a run are
// compared to the same ones. It returns false if that run has none.
func (b *Hardware) TakeLimits(before *record.Manifest) bool {
	was := before.Devices[0]
	if was.Peak == nil {
		return false
	}
	b.Limits.FLOPS, b.Limits.Unsure = *was.Peak, was.Unsure
	for precision, rate := range was.ProductRates() {
		b.Limits.More = append(b.Limits.More, device.Rate{Name: precision + " products", Value: rate, Unit: "FLOP/s"})
	}
	if was.Bandwidth != nil {
		b.Limits.Copy = *was.Bandwidth
	}
	return true
}
