package model

import (
	"fmt"
	"math"
)

// A Link joins machines of a kind, such as the GPUs of a node, or nodes.
type Link struct {
	Name    string  `toml:"name" json:"name"`
	Source  string  `toml:"source" json:"source"`   // where the numbers come from
	Devices int     `toml:"devices" json:"devices"` // most machines that it joins; 0: any number
	B       float64 `toml:"b" json:"b"`             // bytes per second that each device sends while it receives as many
	L       float64 `toml:"l" json:"l"`             // seconds until a neighbour has a short message
}

// check reports the first error in a link.
func (l Link) check() string {
	switch {
	case l.Name == "":
		return "a link has no name"
	case l.Devices < 0 || l.Devices > 1<<20 || l.Devices == 1:
		return fmt.Sprintf("link %s: devices is %d: it must be 2 to %d, or 0 for any number", l.Name, l.Devices, 1<<20)
	case !(l.B > 0) || math.IsInf(l.B, 1) || !(l.L >= 0) || math.IsInf(l.L, 1):
		return fmt.Sprintf("link %s: b must be positive, and l at least 0", l.Name)
	}
	return ""
}

// Links are a machine's links to others of its kind, the one that joins the fewest first.
type Links []Link

// Across is the first link that joins n machines. A ring of them is as slow as that link.
func (ls Links) Across(n int) (Link, bool) {
	for _, l := range ls {
		if l.Devices == 0 || n <= l.Devices {
			return l, true
		}
	}
	return Link{}, false
}

// AllReduce is the time in seconds that n devices in a ring take to sum so many bytes: each
// sends a part to its neighbour 2(n−1) times. With one device it is 0.
func (l Link) AllReduce(bytes float64, n int) float64 { return 2 * l.AllGather(bytes, n) }

// AllGather is the time in seconds after which each of n devices in a ring has all of so many bytes, of
// which each had a part: it sends a part to its neighbour n−1 times. Sums of which each gets a part take
// as long.
func (l Link) AllGather(bytes float64, n int) float64 {
	if n <= 1 {
		return 0
	}
	steps := float64(n - 1)
	return steps/float64(n)*bytes/l.B + steps*l.L
}

// An Iteration is one device's part of an iteration of data-parallel training.
type Iteration struct {
	Compute  float64 // seconds of the whole iteration, without sums
	Backward float64 // of these, the seconds of the last backward pass, which comes last
	Layers   int     // equal layers; the backward pass begins at the top
	Bytes    float64 // gradients of one layer
}

// Over is the time of the iteration by n devices, and the part of it spent waiting for sums. A
// layer's gradients are summed while the layers below compute theirs, one sum after the other.
func (it Iteration) Over(l Link, n int) (seconds, waiting float64) {
	each := l.AllReduce(it.Bytes, n)
	end := 0.0
	for i := range it.Layers {
		formed := it.Compute - it.Backward*float64(it.Layers-1-i)/float64(it.Layers)
		end = max(end, formed) + each
	}
	seconds = max(it.Compute, end)
	return seconds, seconds - it.Compute
}
