package results

// A Winner is what a tune chose at a point: by its score and its rule for ties,
// which a median alone does not tell.
type Winner struct {
	Point   Point    `json:"point"`
	Label   string   `json:"impl"` // as Impl.Label
	Seconds float64  `json:"time_s"`
	Joules  float64  `json:"energy_j,omitempty"`              // of a run, where energy was tuned for
	Run     string   `json:"run"`                             // that measured it
	Ties    []string `json:"ties,omitempty"`                  // labels of those that cannot be told from it
	Dropped int      `json:"dropped_by_prediction,omitempty"` // candidates that a cost model put too far behind to run
}
