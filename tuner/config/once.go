package config

// Once returns m for runs that are checked and not timed: each program runs once.
func (m Measure) Once() Measure {
	m.Verify = true
	m.Rounds, m.MaxRounds, m.MinIters = 1, 1, 1
	m.Warmup, m.MinTime, m.TargetCI, m.Budget, m.PointTimeout = 0, 0, 0, 0, 0
	return m
}

// Idle reports whether nothing is timed: answers are checked, and that is all.
func (m Measure) Idle() bool {
	return m.Verify && m.Rounds == 1 && m.MinTime == 0 && m.Warmup == 0
}
