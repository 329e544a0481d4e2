package record

// A Winner is what a tune chose at a point. The choice depends on scores and a rule for ties, so the
// medians in records do not tell it.
type Winner struct {
	Point   Point    `json:"point"`
	Label   string   `json:"impl"` // as Impl.Label
	Seconds float64  `json:"time_s"`
	Joules  float64  `json:"energy_j,omitempty"`              // of a run, if energy was the objective
	Run     string   `json:"run"`                             // id of the run that measured it
	Ties    []string `json:"ties,omitempty"`                  // labels of candidates that cannot be told from it
	Dropped int      `json:"dropped_by_prediction,omitempty"` // candidates predicted to be too slow to run
}
