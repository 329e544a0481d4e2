package rnn

import (
	"fmt"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A TooLarge is the error for a schedule that was not laid out, since it alone would not fit in
// memory.
type TooLarge struct{ Bytes int64 }

func (e *TooLarge) Error() string {
	return fmt.Sprintf("the schedule alone takes %d bytes", e.Bytes)
}

// ScheduleBytes is the memory of the host that laying s out takes: twice the size of s, since
// garbage grows as large before it is collected, and what deriving the waits takes.
func ScheduleBytes(s *schedule.Schedule) int64 { return 2*s.Size() + s.Clocks() }

// A schedule of more steps than foreseenBeyond has its size estimated, from schedules of fewSteps
// steps and of twice as many.
const (
	foreseenBeyond = 4096
	fewSteps       = 64
)

// A size is what a schedule itself takes, before anything runs.
type size struct {
	nodes int
	bytes int64 // see ScheduleBytes
}

// foresee estimates the size of t's schedule for p from short schedules: each further step of p
// adds as much as a step adds to these.
func foresee(t Technique, p Problem, k knob.Params) (size, error) {
	short := p
	short.History = min(p.History, fewSteps)
	short = Resized(short, min(p.Steps, fewSteps))
	sum, err := sizeOf(t, short, k)
	if err != nil {
		return size{}, err
	}
	first := sum
	grow := func(beyond int, longer Problem) error {
		if beyond == 0 {
			return nil
		}
		s, err := sizeOf(t, longer, k)
		sum.nodes += (s.nodes - first.nodes) * beyond / fewSteps
		sum.bytes += (s.bytes - first.bytes) * int64(beyond) / fewSteps
		return err
	}
	steps, history := Resized(short, 2*fewSteps), short
	history.History = 2 * fewSteps
	if err := grow(p.Steps-short.Steps, steps); err != nil {
		return size{}, err
	}
	return sum, grow(p.History-short.History, history)
}

// sizeOf is the size of t's schedule for p. A setting too large for the steps of p becomes the
// largest that p takes.
func sizeOf(t Technique, p Problem, k knob.Params) (size, error) {
	fitting := knob.Params{}
	for _, offered := range t.Knobs(p) {
		v := k[offered.Name]
		if !offered.Accepts(v) {
			v = offered.Max
		}
		fitting[offered.Name] = v
	}
	plan := newPlan(p, max(1, fitting["streams"]), fitting[sizesName])
	if err := plan.layOutBy(t, fitting); err != nil {
		return size{}, err
	}
	s, err := plan.Schedule()
	if err != nil {
		return size{}, err
	}
	return size{len(s.Nodes), ScheduleBytes(s)}, nil
}
