package record

import (
	"fmt"
	"slices"
	"strings"
)

// Merged says which shards were merged into a run, and how far their machines differ.
type Merged struct {
	Shards []Part      `json:"shards"` // that were found, ordered by index
	Count  int         `json:"count"`  // of all shards, found or not
	Nodes  []NodeSpeed `json:"nodes"`  // ordered by name
}

// A Part is the state of a shard when it was merged.
type Part struct {
	Index   int      `json:"index"`
	Run     string   `json:"run"`
	State   string   `json:"state"` // ShardDone and the like
	Exit    *int     `json:"exit"`
	Nodes   []string `json:"nodes"`
	Done    int      `json:"done"`    // records of the plan; of a tune, points with a winner
	Planned int      `json:"planned"` // what Done is when the shard is complete
	Tune    bool     `json:"tune"`
	Train   bool     `json:"train,omitempty"` // Done and Planned count networks
	Broken  int      `json:"broken"`          // records that failed, timed out, or are incorrect or impossible
}

// States of a shard.
const (
	ShardDone       = "done"
	ShardRunning    = "running"
	ShardStopped    = "stopped"    // its process was killed
	ShardFailed     = "failed"     // its process ended with an error
	ShardIncomplete = "incomplete" // its process ended early, for instance by a budget
)

// NodeSpeed is how fast a machine was at the control point.
type NodeSpeed struct {
	Name   string   `json:"name"`
	Shards []int    `json:"shards"` // that this machine measured
	Ratio  *float64 `json:"ratio"`  // its time over the median of all machines; null: not measured
	Noise  *float64 `json:"noise"`  // of Ratio, relative; null: not measured
}

// leastDifference is how far from 1 a ratio must be at least to count as a difference.
const leastDifference = 0.02

// Differs reports whether the machine is faster or slower than the others by more than
// the noise.
func (n NodeSpeed) Differs() bool {
	if n.Ratio == nil || n.Noise == nil {
		return false
	}
	d := *n.Ratio - 1
	return max(d, -d) > max(*n.Noise, leastDifference)
}

func (n NodeSpeed) String() string {
	switch {
	case n.Ratio == nil:
		return fmt.Sprintf("node %s: no control point was measured there", n.Name)
	case !n.Differs():
		return fmt.Sprintf("node %s: %+.1f %% time at the control point, within the noise of %.1f %%", n.Name, 100*(*n.Ratio-1), 100**n.Noise)
	}
	return fmt.Sprintf("node %s: %+.1f %% time at the control point, beyond the noise of %.1f %%", n.Name, 100*(*n.Ratio-1), 100**n.Noise)
}

// Lines says how far the nodes differ, a line each; nil where there is only one node.
func (m *Merged) Lines() []string {
	if m == nil || len(m.Nodes) < 2 {
		return nil
	}
	var list []string
	for _, n := range m.Nodes {
		list = append(list, n.String())
	}
	return list
}

// Differ names the nodes that differ from the others by more than the noise.
func (m *Merged) Differ() []string {
	var list []string
	if m != nil && len(m.Nodes) > 1 {
		for _, n := range m.Nodes {
			if n.Differs() {
				list = append(list, n.Name)
			}
		}
	}
	return list
}

// Missing lists the shards that were not found.
func (m *Merged) Missing() []int {
	var list []int
	for i := 1; i <= m.Count; i++ {
		if !slices.ContainsFunc(m.Shards, func(p Part) bool { return p.Index == i }) {
			list = append(list, i)
		}
	}
	return list
}

// Complete reports whether every shard is done and nothing in it failed.
func (m *Merged) Complete() bool {
	return len(m.Missing()) == 0 && !slices.ContainsFunc(m.Shards, func(p Part) bool { return p.State != ShardDone || p.Broken > 0 })
}

// Gaps says which shards and records are missing, a line each.
func (m *Merged) Gaps() []string {
	var list []string
	if gone := m.Missing(); len(gone) > 0 {
		list = append(list, fmt.Sprintf("no run was given of %d of %d shards: %s", len(gone), m.Count, Ranges(gone)))
	}
	for _, p := range m.Shards {
		have := fmt.Sprintf("%d of %d records", p.Done, p.Planned)
		if p.Tune {
			have = fmt.Sprintf("%d of %d winners", p.Done, p.Planned)
		}
		if p.Train {
			have = fmt.Sprintf("%d of %d networks trained", p.Done, p.Planned)
		}
		switch {
		case p.State == ShardRunning:
			list = append(list, fmt.Sprintf("shard %d/%d is being measured: it has %s", p.Index, m.Count, have))
		case p.State == ShardStopped:
			list = append(list, fmt.Sprintf("shard %d/%d was killed: it has %s", p.Index, m.Count, have))
		case p.State == ShardFailed:
			list = append(list, fmt.Sprintf("shard %d/%d ended with exit code %d: it has %s", p.Index, m.Count, *p.Exit, have))
		case p.State == ShardIncomplete:
			list = append(list, fmt.Sprintf("shard %d/%d ended early: it has %s", p.Index, m.Count, have))
		case p.Broken > 0:
			list = append(list, fmt.Sprintf("shard %d/%d has %d %s that did not succeed", p.Index, m.Count, p.Broken, p.what()))
		}
	}
	return list
}

// what names the things that Broken counts.
func (p Part) what() string {
	if p.Train {
		return "networks"
	}
	return "records"
}

// Ranges spells sorted numbers as 1, 3-5.
func Ranges(list []int) string {
	var words []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if i == j {
			words = append(words, fmt.Sprint(list[i]))
		} else {
			words = append(words, fmt.Sprintf("%d-%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(words, ", ")
}
