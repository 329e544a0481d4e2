package record

import "fmt"

// A Direction says in which order layers read the steps. In memory "" stands for "forward", the
// direction of all records from before this axis. Files say "forward".
type Direction string

// DirectionOf returns the direction called word, unchecked.
func DirectionOf(word string) Direction {
	if word == "forward" {
		return ""
	}
	return Direction(word)
}

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
	switch to := DirectionOf(string(text)); to {
	case "", "reverse", "both", "alternate":
		*d = to
		return nil
	}
	return fmt.Errorf("record: %q is not a direction: write forward, reverse, both or alternate", text)
}

// Reads counts the layers that read the steps. Layers that run both ways count twice.
func (p Point) Reads() int {
	if p.Direction == "both" {
		return 2 * p.Layers
	}
	return p.Layers
}
