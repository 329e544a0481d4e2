package record

import (
	"slices"

	"rnnbench/internal/family"
)

// A Disturbance is what else the machine did while the samples of a point were taken, that is, between
// one reading of the system's counters and another. All techniques of a point that took turns share it.
// Processors are those that this process may use; shares of them are means over the time between.
type Disturbance struct {
	Seconds    float64  `json:"seconds"` // between the two readings
	Processors int      `json:"processors"`
	Own        *float64 `json:"own_processors"`    // that this program, its workers and its rivals kept busy; null: unknown
	Others     *float64 `json:"other_processors"`  // that other programs kept busy; null: unknown
	Stolen     *float64 `json:"stolen_processors"` // that a hypervisor took away; null: unknown
	Quota      *float64 `json:"quota_processors"`  // that the control group allows; null: no quota
	Stopped    *float64 `json:"stopped_share"`     // share of the time in which the program could run, but the quota stopped it; null: no quota, or unknown
	Heat       *int64   `json:"heat_events"`       // times that heat slowed a processor down; null: unknown
	Runs       []int    `json:"runs"`              // numbers of the processes of other runs of rnnbench; empty: none was looked for, or none ran
}

// Least disturbances that are worth a word, as shares.
const (
	leastOthers  = 0.1  // of a processor, and of all
	leastStolen  = 0.05 // of all processors
	leastStopped = 0.01 // of the time
	full         = 0.9  // of all processors: there is no room left
)

// Crowded reports whether other programs kept processors busy that the program needed, or so many that
// they share its caches, memory and clock. With onGPU, the processors matter only where they have no
// room left. What the counters cannot resolve does not count.
func (d *Disturbance) Crowded(onGPU bool) bool {
	if d == nil || d.Others == nil {
		return false
	}
	others, all := d.clearly(*d.Others), float64(d.Processors)
	if others < leastOthers {
		return false
	}
	return !onGPU && others >= leastOthers*all || d.Own != nil && *d.Own+*d.Others >= full*all
}

// clearly is v processors, less what may be due to the resolution of the counters.
func (d *Disturbance) clearly(v float64) float64 {
	if d.Seconds <= 0 {
		return 0
	}
	return v - 2*family.Tick*float64(d.Processors)/d.Seconds
}

// Robbed reports whether a hypervisor took away much time.
func (d *Disturbance) Robbed() bool {
	return d != nil && d.Stolen != nil && d.clearly(*d.Stolen) >= leastStolen*float64(d.Processors)
}

// Held reports whether the quota of the control group stopped the program.
func (d *Disturbance) Held() bool { return d != nil && d.Stopped != nil && *d.Stopped >= leastStopped }

// Hot reports whether heat slowed a processor down.
func (d *Disturbance) Hot() bool { return d != nil && d.Heat != nil && *d.Heat > 0 }

// Disturb records that d happened while r was measured, with the warnings that follow; nil: it is
// unknown.
func (r *Record) Disturb(d *Disturbance) {
	r.Disturbance = d
	for _, w := range d.warnings(OnGPU(r.Device)) {
		if !slices.Contains(r.Warnings, w) {
			r.Warnings = append(slices.Clip(r.Warnings), w)
		}
	}
}

// warnings returns the warnings of a record with disturbance d.
func (d *Disturbance) warnings(onGPU bool) []string {
	var words []string
	if d.Crowded(onGPU) || d.Robbed() {
		words = append(words, WarnDisturbed)
	}
	if d.Held() {
		words = append(words, WarnQuota)
	}
	if d.Hot() && !onGPU {
		words = append(words, WarnThrottled)
	}
	return words
}
