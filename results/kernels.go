package results

import "fmt"

// Keys that version 2 of the schema added. Each is null where it does not apply, or was
// not found out.

// A Kernel is a function that one run launches, with its geometry.
type Kernel struct {
	Name      string  `json:"name"`    // of the function, as profilers show it
	Variant   *string `json:"variant"` // null: the device has one for such an operation
	Config    *string `json:"config"`  // in words
	Grid      *[3]int `json:"grid"`    // blocks; null: a library chooses, or the device has none
	Block     *[3]int `json:"block"`   // threads
	Cluster   *int    `json:"cluster"` // blocks of a cluster; null: there are none
	Registers *int    `json:"registers"`
	Shared    *int    `json:"shared_bytes"`
	Spills    *int    `json:"spill_bytes"`
	Launches  int     `json:"launches"` // by one run
	Group     *Group  `json:"group"`    // null: it keeps no weights on chip, or the record is from before this key
}

// A Group is the blocks of a kernel that share one copy of a layer's weights.
type Group struct {
	Blocks  int  `json:"blocks"`  // of one layer, where a kernel runs a stack
	Samples int  `json:"samples"` // sequences that they multiply at a time
	Spread  bool `json:"spread"`  // over the GPU; else they are a cluster
	Tensor  bool `json:"tensor"`  // they multiply on tensor cores
	Steps   int  `json:"steps"`   // that one launch takes
}

// Predicted is what a cost model expected before anything ran.
type Predicted struct {
	Seconds float64  `json:"seconds"`
	Part    string   `json:"part"` // of the run that the seconds are of: one of the words below
	Model   string   `json:"model"`
	Error   *float64 `json:"error"` // relative, where the model was fitted; null: not recorded
}

// Parts of a run that a prediction is of.
const (
	PartRun        = "run"
	PartPersistent = "persistent layers"
)

// Floor is the least time that a run can take with the geometry that ran.
type Floor struct {
	Seconds float64            `json:"seconds"` // of the largest part, or of steps that follow each other
	Bound   string             `json:"bound"`   // "exchange", "multiply-adds", "memory" or "launch": what it is the time of
	Parts   map[string]float64 `json:"parts"`   // seconds of each part alone, such as "exchange" and "memory L2"
	Bytes   map[string]int64   `json:"bytes"`   // that must move, by the memory that gives them
	Share   float64            `json:"share"`   // of the measured median
	Error   *float64           `json:"error"`   // relative, of the machine's model where it was fitted; null: not recorded
}

// A Node is the machine of several that measured the record.
type Node struct {
	Name  string  `json:"name"`
	Shard *string `json:"shard"` // of the run, such as 3/16; null: it was not divided
}

// Energy is what a run took. It is measured over windows of seconds, in which a technique
// runs back to back, since counters tick slowly.
type Energy struct {
	Joules      *float64  `json:"joules"`       // of one run, the median over windows; null: Reason says why
	Net         *float64  `json:"net_joules"`   // of that, beyond what the device takes at rest
	Watts       *float64  `json:"watts"`        // mean over the windows, by the counter
	Idle        *float64  `json:"idle_watts"`   // at rest
	Polled      *float64  `json:"polled_watts"` // mean of what the device itself says; null: nothing
	Clock       *float64  `json:"clock_hz"`     // mean
	Temperature *float64  `json:"temperature_c"`
	Windows     []float64 `json:"windows"` // joules of one run, in each
	Source      string    `json:"source"`  // counter: "nvml", "rapl"; "": none
	Reason      *string   `json:"reason"`  // why there is none
}

// RivalFact is what the facts of a device about its rivals begin with: the name follows.
const RivalFact = "rival "

// A Rival is a program from elsewhere that ran as a technique.
type Rival struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Lengths are those of the sequences of a batch; null: all have the point's steps.
type Lengths struct {
	Distribution string  `json:"distribution"`
	Mean         float64 `json:"mean"`
	Max          int     `json:"max"`
}

// Schemas are the versions that readers take, the oldest first.
func Schemas() []string { return []string{"rnnbench.record/1", Schema} }

// Resumable is why the run of m cannot be resumed: records of an older version lack
// keys that those of this one have.
func (m *Manifest) Resumable() error {
	if m.Records == Schema {
		return nil
	}
	return fmt.Errorf("run %s cannot be resumed, because its records have the older form %s: start a new run without --resume", m.Run, m.Records)
}
