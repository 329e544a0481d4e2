package rnn

import "fmt"

// A Direction says in which order the layers of a stack read the steps. Row t of a layer's output
// belongs to row t of its input either way, as in PyTorch.
type Direction int

const (
	FromFirst   Direction = iota // from the first step to the last
	FromLast                     // from the last step to the first
	BothWays                     // each layer twice, once each way; outputs lie side by side, from the first step first
	Alternating                  // in turn, the first layer from the last step, as in basecallers
)

// Directions lists the directions by name.
func Directions() []string { return []string{"forward", "reverse", "both", "alternate"} }

func (d Direction) String() string { return Directions()[d] }

// Ways is how many times each layer runs: once for each way in which it reads the steps. Each has
// parameters and states of its own. Number l·Ways()+w is way w of layer l.
func (p Problem) Ways() int {
	if p.Direction == BothWays {
		return 2
	}
	return 1
}

// Reads is how many layers read the steps, those that run both ways counted twice.
func (p Problem) Reads() int { return p.Layers * p.Ways() }

// Backwards reports whether number i of Reads reads from the last step.
func (p Problem) Backwards(i int) bool {
	switch p.Direction {
	case FromLast:
		return true
	case BothWays:
		return i%2 == 1
	case Alternating:
		return i%2 == 0
	}
	return false
}

// Out is the number of features of the last layer's output.
func (p Problem) Out() int { return p.Ways() * Emits(p) }

// Named is PyTorch's name of a tensor of layer i of Problem.Reads. what is its name without the layer.
func (p Problem) Named(what string, i int) string {
	name := fmt.Sprintf("%s_l%d", what, i/p.Ways())
	if i%p.Ways() == 1 {
		name += "_reverse"
	}
	return name
}
