package explain

import (
	"fmt"

	"rnnbench/model"
	"rnnbench/plots/quantity"
	"rnnbench/tuner"
)

// A Floor is the least time of a run, with its parts.
type Floor struct {
	Seconds float64     `json:"seconds"`
	Bound   string      `json:"bound"`
	Parts   []FloorPart `json:"parts"`
	Error   *float64    `json:"error"` // relative error of the machine's model where it was fitted; null: not recorded
}

// A FloorPart is the least time of one kind of work.
type FloorPart struct {
	Name    string   `json:"name"`
	Seconds float64  `json:"seconds"`
	Count   float64  `json:"count"` // exchanges, operations, bytes or launches
	Each    *float64 `json:"each_s"`
	Rate    *float64 `json:"per_s"` // null where each_s is known
}

// AddFloor adds the floor of l on m; m is nil if the machine is unknown.
func (e *Explanation) AddFloor(m *model.Machine, l *tuner.Layout) error {
	if e.Declined != nil {
		return nil
	}
	peak := 0.0
	if e.Peak != nil {
		peak = *e.Peak
	}
	f, err := tuner.Floor(m, l, e.Kernels, peak, false)
	if f == nil || err != nil {
		return err
	}
	e.Floor = &Floor{Seconds: f.Seconds, Bound: f.Bound, Parts: []FloorPart{}, Error: orNil(f.Error)}
	for _, p := range f.Parts {
		e.Floor.Parts = append(e.Floor.Parts, FloorPart{Name: p.String(), Seconds: p.Seconds, Count: p.Count, Each: orNil(p.Each), Rate: orNil(p.Rate)})
	}
	return nil
}

// notes describes f and its parts in words.
func (f *Floor) notes() []string {
	if f == nil {
		return nil
	}
	notes := []string{fmt.Sprintf("floor: a run takes at least %s, by %s; parts may overlap:", quantity.SI(f.Seconds, "s"), f.Bound)}
	for _, p := range f.Parts {
		notes = append(notes, "floor: "+p.text())
	}
	return notes
}

// text describes p in words, such as "exchange: 100 steps of 300 ns take 30.0 µs".
func (p FloorPart) text() string {
	took := quantity.SI(p.Seconds, "s")
	switch {
	case p.Name == model.BoundExchange:
		return fmt.Sprintf("%s: %.0f steps of %s take %s", p.Name, p.Count, quantity.SI(*p.Each, "s"), took)
	case p.Each != nil:
		return fmt.Sprintf("%s: %.0f of %s take %s", p.Name, p.Count, quantity.SI(*p.Each, "s"), took)
	case p.Name == model.BoundProducts:
		return fmt.Sprintf("%s: %s at %s take %s", p.Name, quantity.SI(p.Count, "FLOP"), quantity.SI(*p.Rate, "FLOP/s"), took)
	}
	return fmt.Sprintf("%s: %s at %s take %s", p.Name, quantity.Bytes(p.Count), quantity.SI(*p.Rate, "B/s"), took)
}
