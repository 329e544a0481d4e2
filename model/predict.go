package model

import "rnnbench/rnn/cell"

// A Prediction is the best step of a layer on a variant of a machine.
type Prediction struct {
	Variant   string
	Cell      string // for tables
	Precision string // likewise
	Step      Step
	Peak      float64 // of the variant, FLOP/s
}

// Predict predicts the best step of w on variant v of m.
func (v Variant) Predict(m *Machine, w Work) (Prediction, error) {
	changed := v.Of(m)
	w.Bytes = v.Bytes(w.Bytes)
	s, err := changed.Best(w)
	return Prediction{Variant: v.Name, Step: s, Peak: changed.FLOPS}, err
}

// Bands is a step of a layer in which each worker keeps a band of recurrent weights.
type Bands struct {
	Home     string  `json:"home"`        // memory that the weights stay in
	Resident bool    `json:"resident"`    // the weights stay in caches of one worker each
	Share    float64 `json:"share_bytes"` // of weights in one module of Home
	Room     float64 `json:"room_bytes"`  // for weights, in the memory of one worker that holds most
	RoomIn   string  `json:"room_in"`     // its name
	Largest  int     `json:"largest"`     // largest hidden size that would stay there

	Step      float64 `json:"step_s"`
	Compute   float64 `json:"compute_s"`
	Weights   float64 `json:"weights_s"`
	Exchange  float64 `json:"exchange_s"`
	Sync      float64 `json:"sync_s"`
	Stream    float64 `json:"stream_s"`
	Pointwise float64 `json:"pointwise_s"`
}

// InBands predicts a step of w, of cell c, in bands.
func (m *Machine) InBands(c *cell.Cell, w Work) (*Bands, error) {
	s, err := m.Bands(w)
	if err != nil {
		return nil, err
	}
	room, in, largest, err := m.Room(c, w.Bytes)
	if err != nil {
		return nil, err
	}
	return &Bands{
		Home: s.Home, Resident: s.Resident, Share: s.Share, Room: room, RoomIn: in, Largest: largest,
		Step: s.Time, Compute: s.Compute, Weights: s.Weights, Exchange: s.Exchange, Sync: s.Sync, Stream: s.Stream, Pointwise: s.Pointwise,
	}, nil
}
