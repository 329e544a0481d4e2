package results

import "fmt"

// A Direction says in which order layers read the steps. "" is "forward", the direction of all
// records of before; the word is "forward" wherever it is written.
type Direction string

// DirectionOf is the direction of that name.
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
	return fmt.Errorf("results: %q is not a direction: write forward, reverse, both or alternate", text)
}

// Reads is how many layers read the steps: those that run both ways count twice.
func (p Point) Reads() int {
	if p.Direction == "both" {
		return 2 * p.Layers
	}
	return p.Layers
}
