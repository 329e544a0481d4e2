package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnnbench/tuner/grid"
)

// Measure says how points are measured.
type Measure struct {
	Effort       string        // "quick", "normal" or "rigorous": sets the defaults of the next seven
	Rounds       int           // samples of each technique
	MaxRounds    int           // maximum samples, taken while the interval is too wide
	Warmup       time.Duration // time to run before the first sample
	MinTime      time.Duration // minimum length of a sample
	MinIters     int           // minimum runs in a sample
	TargetCI     float64       // target half-width of the median's interval, as a share of the median; 0: any
	PointTimeout time.Duration // for one technique at one point; 0: none
	Budget       time.Duration // for everything; 0: none
	Until        string        // "precise", or UntilClear
	Order        string        // "interleaved", "random" or "sequential"
	Seed         uint64        // of inputs and order
	Cache        string        // "hot" or "cold"
	Data         string        // "normal", "uniform" or "zeros"
	Verify       bool          // check each answer before timing it
	OnError      string        // "continue" or "stop"
	Threads      int           // of the CPU; 0: as many as it has
	Isolate      string        // worker process: "auto", "on" or "off"
	Energy       bool          // count the energy of each technique as well
}

// UntilClear ends the samples of a point once its winner is settled. Where it is open, they go on for
// the point's share of the budget or, without one, to MaxRounds.
const UntilClear = "clear"

// Default returns the default settings.
func Default() Measure {
	return Measure{
		Effort: "normal", Rounds: 10, MaxRounds: 30, Warmup: 100 * time.Millisecond, MinTime: 20 * time.Millisecond, MinIters: 3,
		TargetCI: 0.01, PointTimeout: 30 * time.Second,
		Until: "precise", Order: "interleaved", Seed: 1, Cache: "hot", Data: "normal", Verify: true, OnError: "continue", Isolate: "auto",
	}
}

// apply sets the settings that an effort stands for and leaves the others.
func (m *Measure) apply(effort string) {
	m.Effort = effort
	d := Default()
	switch effort {
	case "normal":
		m.Rounds, m.MaxRounds, m.Warmup, m.MinTime, m.MinIters = d.Rounds, d.MaxRounds, d.Warmup, d.MinTime, d.MinIters
		m.TargetCI, m.PointTimeout = d.TargetCI, d.PointTimeout
	case "quick": // the fewest rounds that have an interval
		m.Rounds, m.MaxRounds, m.Warmup, m.MinTime, m.MinIters = 6, 6, 20*time.Millisecond, 5*time.Millisecond, 1
		m.TargetCI, m.PointTimeout = 0.05, time.Second
	case "rigorous":
		m.Rounds, m.MaxRounds, m.Warmup, m.MinTime, m.MinIters = 30, 100, 500*time.Millisecond, 100*time.Millisecond, 5
		m.TargetCI, m.PointTimeout = 0.005, 5*time.Minute
	}
}

// set assigns the setting that a flag names.
func (m *Measure) set(name, text string) error {
	var err error
	word := func(into *string) {
		choices := choicesOf(name)
		if slices.Contains(choices, text) {
			*into = text
		} else if near := grid.Nearest(text, choices); near != "" {
			err = fmt.Errorf("it cannot be %q: did you mean %s?", text, near)
		} else {
			err = fmt.Errorf("it cannot be %q: choose among %s", text, strings.Join(choices, ", "))
		}
	}
	switch name {
	case "effort":
		word(&m.Effort)
	case "rounds":
		m.Rounds, err = parseCount(text, 1, 100_000)
	case "max-rounds":
		m.MaxRounds, err = parseCount(text, 1, 100_000)
	case "warmup":
		m.Warmup, err = parseDuration(text)
	case "min-time":
		m.MinTime, err = parseDuration(text)
	case "min-iters":
		m.MinIters, err = parseCount(text, 1, 1_000_000_000)
	case "target-ci":
		m.TargetCI, err = parseFraction(text)
	case "point-timeout":
		m.PointTimeout, err = parseDuration(text)
	case "budget":
		m.Budget, err = parseDuration(text)
	case "until":
		word(&m.Until)
	case "order":
		word(&m.Order)
	case "seed":
		if m.Seed, err = strconv.ParseUint(text, 10, 63); err != nil {
			err = fmt.Errorf("%q is not a seed: write a whole number from 0 to %d", text, math.MaxInt64)
		}
	case "cache":
		word(&m.Cache)
	case "data":
		word(&m.Data)
	case "verify":
		m.Verify, err = parseSwitch(text)
	case "energy":
		m.Energy, err = parseSwitch(text)
	case "on-error":
		word(&m.OnError)
	case "threads":
		m.Threads, err = parseCount(text, 0, 65536)
	case "isolate":
		word(&m.Isolate)
	default:
		panic("config: there is no setting " + name)
	}
	return err
}

// value returns the setting that a flag names, in the form of the file.
func (m *Measure) value(name string) any {
	switch name {
	case "effort":
		return m.Effort
	case "rounds":
		return m.Rounds
	case "max-rounds":
		return m.MaxRounds
	case "warmup":
		return m.Warmup.String()
	case "min-time":
		return m.MinTime.String()
	case "min-iters":
		return m.MinIters
	case "target-ci":
		return formatFraction(m.TargetCI)
	case "point-timeout":
		return m.PointTimeout.String()
	case "budget":
		return m.Budget.String()
	case "until":
		return m.Until
	case "order":
		return m.Order
	case "seed":
		return m.Seed
	case "cache":
		return m.Cache
	case "data":
		return m.Data
	case "verify":
		return m.Verify
	case "energy":
		return m.Energy
	case "on-error":
		return m.OnError
	case "threads":
		return m.Threads
	case "isolate":
		return m.Isolate
	}
	panic("config: there is no setting " + name)
}

func parseSwitch(text string) (bool, error) {
	switch text {
	case "true", "on":
		return true, nil
	case "false", "off":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither on nor off: write on or off", text)
}

func parseCount(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q is not a number in range: write a whole number from %d to %d", text, least, most)
	}
	return n, nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: write one with a unit, such as 100ms, 30s or 10m", text)
	}
	if d < 0 {
		return 0, fmt.Errorf("%s must not be negative: write 0 or more", text)
	}
	return d, nil
}

// parseFraction reads 1% or 0.01.
func parseFraction(text string) (float64, error) {
	digits, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		f /= 100
	}
	if err != nil || math.IsNaN(f) || f < 0 {
		return 0, fmt.Errorf("%q is not a percentage: write one such as 1%% or 0.01", text)
	}
	if f > 1 || f == 1 && !percent {
		return 0, fmt.Errorf("%q is more than 100 %%: write at most 100%%, such as 1%% or 0.01", text)
	}
	if f == 0 {
		f = 0 // and not -0
	}
	return f, nil
}

// formatFraction writes f so that it reads back the same.
func formatFraction(f float64) string {
	percent := strconv.FormatFloat(f*100, 'g', 12, 64) + "%"
	if back, err := parseFraction(percent); err == nil && back == f {
		return percent
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
