package record

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// ManifestSchema names the version of Manifest.
const ManifestSchema = "rnnbench.manifest/1"

// A Manifest describes a run: what was asked for, where, and how it ended.
type Manifest struct {
	Schema  string `json:"schema"`
	Records string `json:"records"` // schema of the records
	Run     string `json:"run"`
	Label   string `json:"label"`

	Argv        []string        `json:"argv"`
	Config      json.RawMessage `json:"config"` // as resolved from flags, environment, file and defaults
	Environment Environment     `json:"env"`
	Devices     []Device        `json:"devices"`
	Scope       Scope           `json:"plan"`
	Training    *TrainingPlan   `json:"training,omitempty"` // what a run of train trains, and until when; absent: no run of train
	Winners     []Winner        `json:"winners,omitempty"`  // what a tune chose at each point; absent: no tune
	Merged      *Merged         `json:"merged,omitempty"`   // the shards that were merged into the run; absent: it was measured whole

	PID      int            `json:"pid"` // of the latest process that wrote
	Started  time.Time      `json:"started"`
	Resumed  []time.Time    `json:"resumed"`
	Finished *time.Time     `json:"finished"` // null: the run is running or was killed
	Exit     *int           `json:"exit"`     // exit status of the process
	Counts   map[Status]int `json:"counts"`   // newest records by status
	Load     []float64      `json:"load"`     // load averages at the end, over 1, 5 and 15 minutes
}

// A Device describes the device of a run, in the device's own words.
type Device struct {
	Key       string            `json:"key"` // as in Record.Device
	Name      string            `json:"name"`
	Peak      *float64          `json:"peak_flops_per_s"`
	Bandwidth *float64          `json:"peak_bytes_per_s"`
	Facts     map[string]string `json:"facts"`
	// Unsure names the measured limits that were disturbed and may be too low, as in
	// device.Limits. Nothing is compared with them.
	Unsure []string `json:"unsure,omitempty"`
	// Machine describes the device's memories and workers for models of its speed; absent: not
	// measured.
	Machine json.RawMessage `json:"machine,omitempty"`
}

// PeakRate is the measured peak of fp32 in FLOP/s; 0: unknown or unsure.
func (d Device) PeakRate() float64 { return d.limit(d.Peak, "peak") }

// CopyRate is the measured copy rate in bytes per second, read and written; 0: unknown or unsure.
func (d Device) CopyRate() float64 { return d.limit(d.Bandwidth, "copy") }

func (d Device) limit(v *float64, name string) float64 {
	if v == nil || slices.Contains(d.Unsure, name) {
		return 0
	}
	return *v
}

// OtherRivals names the rivals whose version or knobs differ between two devices.
func OtherRivals(a, b Device) (names []string) {
	for fact, was := range a.Facts {
		name, rival := strings.CutPrefix(fact, RivalFact)
		if is, both := b.Facts[fact]; rival && both && was != is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// OnGPU reports whether a device's key is that of a GPU.
func OnGPU(key string) bool { return strings.HasPrefix(key, "cuda-") }

// A Scope sums up what a run was to measure.
type Scope struct {
	Hash    string `json:"hash"`    // of the points and techniques; of a shard, of the whole agenda
	Points  int    `json:"points"`  // problems
	Records int    `json:"records"` // problems × techniques, skipped ones included
	Summary string `json:"summary"`
	Shard   *Shard `json:"shard,omitempty"` // absent: the agenda was not divided
}
