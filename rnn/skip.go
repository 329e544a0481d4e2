package rnn

import (
	"fmt"

	"rnnbench/rnn/schedule"
)

// A shortcut adds what goes into Skip layers to what comes out of them, at each step of each sequence.
// These layers are a module. It is the identity shortcut of He et al. (2016), and the module of Diamos
// et al. (2016), section 5; see lookahead.go for its row convolution. Modules follow one another from the first
// layer on. A remainder of fewer layers is no module.
//
// A module whose input is not as wide as its output has no shortcut: only the first may be one. Nor has
// a first module that reads one-hot input or convolutions.

// ShortcutTo says which layers a shortcut passes by that ends at layer l; first is the lowest of them. ok is
// false if none ends there.
func ShortcutTo(p Problem, l int) (first int, ok bool) {
	if p.Skip == 0 || (l+1)%p.Skip != 0 {
		return 0, false
	}
	first = l + 1 - p.Skip
	return first, p.Width(first) == p.Out() && (first > 0 || !p.OneHot && p.Conv == "")
}

// ShortcutFrom does so for a shortcut that begins below layer l; last is the highest layer that it passes by.
func ShortcutFrom(p Problem, l int) (last int, ok bool) {
	last = l + p.Skip - 1
	if p.Skip == 0 || l%p.Skip != 0 || last >= p.Layers {
		return 0, false
	}
	_, ok = ShortcutTo(p, last)
	return last, ok
}

// Joins reports whether the network is composed, so that its output is not simply that of its last layer.
// Then an answer shows it beside the states of layers.
func Joins(p Problem) bool {
	return p.Direction != FromFirst || p.Skip > 0 || p.Lookahead > 0 || p.Transcript > 0 || p.Dense > 0 || p.Conv != ""
}

// checkSkip reports an invalid number of layers.
func checkSkip(p Problem) error {
	if p.Skip < 0 || p.Skip > MaxLayers {
		return fmt.Errorf("rnn: skip is %d: it must be 0 (no shortcuts) to %d layers", p.Skip, MaxLayers)
	}
	return nil
}

// declineSkip says why p's layers cannot have shortcuts.
func declineSkip(p Problem) error {
	if p.Skip > 0 && p.History > 0 {
		return fmt.Errorf("%w: what shortcuts add is not kept from the previous minibatch, but history is %d: set history to 0, or skip to none", schedule.ErrSkip, p.History)
	}
	return nil
}
