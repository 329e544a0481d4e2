package model

import (
	"fmt"
	"math"
)

// A Link is what joins machines of a kind, such as the GPUs of a node, or nodes.
type Link struct {
	Name    string  `toml:"name" json:"name"`
	Source  string  `toml:"source" json:"source"`   // where the numbers come from
	Devices int     `toml:"devices" json:"devices"` // how many it joins at most; 0: any number
	B       float64 `toml:"b" json:"b"`             // bytes per second that each device sends while it receives as many
	L       float64 `toml:"l" json:"l"`             // seconds until a neighbour has a short message
}

// check says what is wrong with a link.
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

// Links are those of a machine to others of its kind, from the one that joins the fewest.
type Links []Link

// Across is the link that a ring of n machines needs: the first that joins as many. All of
// the ring is as slow as that.
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
func (l Link) AllReduce(bytes float64, n int) float64 {
	if n <= 1 {
		return 0
	}
	steps := 2 * float64(n-1)
	return steps/float64(n)*bytes/l.B + steps*l.L
}

// An Iteration is one of data-parallel training, as one device runs its part.
type Iteration struct {
	Compute  float64 // seconds of all of it, without sums
	Backward float64 // of these, those of the last backward pass, at their end
	Layers   int     // equal ones, from whose top the backward pass begins
	Bytes    float64 // gradients of one layer
}

// Over is the time of the iteration by n devices, and the part of it that they wait for sums.
// A layer's gradients are summed while the layers below compute theirs, one sum after the
// other.
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
