package axis

import (
	"fmt"
	"slices"
)

// A Direction says in which order layers read the steps. In memory "" stands for "forward", the
// direction of all records from before this axis. Files say "forward".
type Direction string

// directions lists the directions by name.
func directions() []string { return []string{"forward", "reverse", "both", "alternate"} }

func (d Direction) String() string {
	if d == "" {
		return "forward"
	}
	return string(d)
}

// MarshalText implements encoding.TextMarshaler.
func (d Direction) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Direction) UnmarshalText(text []byte) error {
	switch word := string(text); {
	case word == "" || word == "forward":
		*d = ""
		return nil
	case slices.Contains(directions(), word):
		*d = Direction(word)
		return nil
	}
	return fmt.Errorf("%q is not a direction: write forward, reverse, both or alternate", text)
}

// Reads counts the layers that read the steps. Layers that run both ways count twice.
func (p Point) Reads() int {
	if p.Direction == "both" {
		return 2 * p.Layers
	}
	return p.Layers
}
