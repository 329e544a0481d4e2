package explain

import (
	"fmt"
	"slices"

	"rnnbench/model"
	"rnnbench/plots/quantity"
	"rnnbench/rnn"
	"rnnbench/tuner"
)

// A Floor is the least time of a run, with its parts.
type Floor struct {
	Seconds float64     `json:"seconds"`
	Bound   string      `json:"bound"`
	Parts   []FloorPart `json:"parts"`
	Lower   string      `json:"lower"` // what would have to change, so that the part that binds takes less time
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
	e.Floor = &Floor{Seconds: f.Seconds, Bound: f.Bound, Parts: []FloorPart{}, Lower: lower(m, l, f), Error: orNil(f.Error)}
	for _, p := range f.Parts {
		e.Floor.Parts = append(e.Floor.Parts, FloorPart{Name: p.String(), Seconds: p.Seconds, Count: p.Count, Each: orNil(p.Each), Rate: orNil(p.Rate)})
	}
	return nil
}

// lower says what would have to change, so that the part of f that binds takes less time.
func lower(m *model.Machine, l *tuner.Layout, f *model.Floor) string {
	switch f.Bound {
	case model.BoundExchange:
		each := 0.0
		for _, p := range f.Parts {
			if p.Bound == f.Bound {
				each = p.Each
			}
		}
		switch {
		case m.GPU == nil:
			return "workers meet after each step; only fewer steps in a row take less, such as layers that run side by side"
		case each < m.GPU.Push:
			return "the threads of a block wait for each other's states in each step; only fewer steps in a row take less, such as layers that run side by side"
		case each > m.GPU.Push:
			return "blocks all over the GPU wait for each other's states in each step; layers that fit a cluster wait less, and only fewer steps in a row avoid it"
		}
		return "the blocks of a cluster wait for each other's states in each step; only fewer steps in a row take less, such as layers that run side by side"
	case model.BoundProducts:
		if f.Chain == f.Seconds && m.GPU != nil {
			return "each step waits for the products of one sequence by one group of blocks; larger groups or narrower values take less"
		}
		if l.Problem.Precision == rnn.FP32 {
			return "products run at the peak of this precision; only narrower values or fewer operations take less"
		}
		return "products run at the peak of this precision; only fewer operations take less"
	case model.BoundLaunch:
		if l.DeviceKnobs["graph"] == 0 {
			return "the host launches one kernel after the other; graph=1 launches them faster, and fusion or persistent kernels need fewer"
		}
		return "kernels start one after the other; only fewer kernels take less: fusion, larger batches of input products, or persistent kernels"
	}
	again := slices.ContainsFunc(f.Parts, func(p model.Part) bool { return p.Memory == f.Memory && p.Again > p.Count/2 })
	if again {
		return fmt.Sprintf("each step reads weights from %s again; narrower values or fewer units would let nearer memory keep them, and more sequences share a reading", f.Memory)
	}
	return fmt.Sprintf("inputs, weights and outputs pass through %s once; only narrower values or fewer of them take less", f.Memory)
}

// notes describes f and its parts in words, and the share that a run reached; nil: it was not run.
func (f *Floor) notes(run *Measured) []string {
	if f == nil {
		return nil
	}
	notes := []string{fmt.Sprintf("floor: a run takes at least %s, by %s; parts may overlap:", quantity.SI(f.Seconds, "s"), f.Bound)}
	for _, p := range f.Parts {
		notes = append(notes, "floor: "+p.text())
	}
	notes = append(notes, fmt.Sprintf("floor: bound by %s: %s", f.Bound, f.Lower))
	if run != nil {
		notes = append(notes, fmt.Sprintf("floor: a run took %s, so it reached %s of its floor", quantity.SI(run.Plain, "s"), quantity.Percent(f.Seconds/run.Plain)))
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
