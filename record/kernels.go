package record

import "fmt"

// The types of keys that version 2 of the schema added. Each key is null where it does not apply or is
// unknown.

// A Kernel is a function that one run launches, with its geometry.
type Kernel struct {
	Name      string  `json:"name"`    // of the function, as profilers show it
	Variant   *string `json:"variant"` // null: the device has only one for this operation
	Config    *string `json:"config"`  // in words
	Grid      *[3]int `json:"grid"`    // blocks; null: a library chooses, or the device has none
	Block     *[3]int `json:"block"`   // threads
	Cluster   *int    `json:"cluster"` // blocks of a cluster; null: no clusters
	Registers *int    `json:"registers"`
	Shared    *int    `json:"shared_bytes"`
	Spills    *int    `json:"spill_bytes"`
	Launches  int     `json:"launches"` // by one run
	Group     *Group  `json:"group"`    // null: it keeps no weights on chip, or the record is from before this key
}

// A Group describes the blocks of a kernel that share one copy of a layer's weights.
type Group struct {
	Blocks  int  `json:"blocks"`  // in a kernel of a stack, those of one layer
	Samples int  `json:"samples"` // sequences that the blocks multiply at a time
	Spread  bool `json:"spread"`  // the blocks lie anywhere on the GPU; false: they form a cluster
	Tensor  bool `json:"tensor"`  // the blocks multiply on tensor cores
	Steps   int  `json:"steps"`   // of one launch
}

// Predicted is the time that a cost model predicted before anything ran.
type Predicted struct {
	Seconds float64  `json:"seconds"`
	Part    string   `json:"part"` // the part of the run that Seconds cover: PartRun or PartPersistent
	Model   string   `json:"model"`
	Error   *float64 `json:"error"` // relative error of the model where it was fitted; null: not recorded
}

// The parts of a run that a prediction may cover.
const (
	PartRun        = "run"
	PartPersistent = "persistent layers"
)

// Floor is the least time that a run can take with its kernels' geometry.
type Floor struct {
	Seconds float64            `json:"seconds"` // of the largest part, or the sum over steps that must follow each other
	Bound   string             `json:"bound"`   // the part that decides: "exchange", "multiply-adds", "memory" or "launch"
	Parts   map[string]float64 `json:"parts"`   // seconds of each part alone, such as "exchange" and "memory L2"
	Bytes   map[string]int64   `json:"bytes"`   // that must come through each memory
	Share   float64            `json:"share"`   // Seconds over the measured median
	Error   *float64           `json:"error"`   // relative error of the machine's model where it was fitted; null: not recorded
}

// A Node is the machine that measured the record, where several did.
type Node struct {
	Name  string  `json:"name"`
	Shard *string `json:"shard"` // of the run, such as 3/16; null: it was not divided
}

// Energy is the energy that a run takes. It is measured over windows of seconds, in which the
// technique runs back to back, since counters tick slowly.
type Energy struct {
	Joules      *float64  `json:"joules"`       // of one run, the median over windows; null: unknown, see Reason
	Net         *float64  `json:"net_joules"`   // Joules less what the device takes at rest
	Watts       *float64  `json:"watts"`        // mean over the windows, by the counter
	Idle        *float64  `json:"idle_watts"`   // at rest
	Polled      *float64  `json:"polled_watts"` // mean of the power that the device itself reports; null: none
	Clock       *float64  `json:"clock_hz"`     // mean
	Temperature *float64  `json:"temperature_c"`
	Windows     []float64 `json:"windows"` // joules of one run in each window
	Source      string    `json:"source"`  // counter: "nvml", "rapl"; "": none
	Reason      *string   `json:"reason"`  // why Joules is null
}

// RivalFact begins the names of a device's facts about rivals. The rival's name follows.
const RivalFact = "rival "

// A Rival is another program that ran as a technique.
type Rival struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Lengths describes the lengths of a batch's sequences in steps; null: all have the point's steps.
type Lengths struct {
	Distribution string  `json:"distribution"`
	Mean         float64 `json:"mean"`
	Max          int     `json:"max"`
}

// Schemas lists the versions that readers accept, the oldest first.
func Schemas() []string { return []string{"rnnbench.record/1", Schema} }

// Resumable returns an error if the run of m cannot be resumed, since records of an older version
// lack keys of this one.
func (m *Manifest) Resumable() error {
	if m.Records == Schema {
		return nil
	}
	return fmt.Errorf("run %s cannot be resumed, because its records have the older form %s: start a new run without --resume", m.Run, m.Records)
}
