package cpu

import (
	"fmt"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// declined returns an error for knob settings that no operation of s can use.
func (pl *planner) declined(s *schedule.Schedule, f simd.Format, k knob.Params) error {
	if err := seated(pl, k); err != nil {
		return err
	}
	scans, cut, lanes := false, false, false
	teams := 0
	for _, n := range s.Nodes {
		hidden := 0
		switch op := n.Op.(type) {
		case schedule.Persistent:
			hidden = op.Hidden()
		case schedule.PersistentBackward:
			hidden = op.Hidden()
		case schedule.Scan, schedule.ScanBackward:
			w := pl.scanOf(op, k)
			if w.serial && k["scansplit"] > 1 {
				return fmt.Errorf("cpu: scansplit=%d: %w: a worker runs all steps of its units one after another: leave it out", k["scansplit"], schedule.ErrKnob)
			}
			scans, cut, lanes = true, cut || w.cut > 1, lanes || w.lanes != nil
			if w.most%w.cut > 0 {
				return fmt.Errorf("cpu: scansplit=%d: %w: it must divide the %d workers of the scan", w.cut, schedule.ErrKnob, w.most)
			}
		}
		if hidden == 0 || k["bands"] == 0 && k["crews"] == 0 {
			continue
		}
		if k["bands"] > 0 && pl.ownSequences(n.Op, f, k) {
			return fmt.Errorf("cpu: bands=%d: %w: each worker runs all units of its own sequences: set sequences=1", k["bands"], schedule.ErrKnob)
		}
		if teams == 0 {
			teams = pl.teams(s, f, k)
		}
		team := n.Stream % teams
		members := pl.first(team+1, teams) - pl.first(team, teams)
		if err := banded(k["bands"], hidden, members); err != nil {
			return err
		}
		if err := divided(k, sequences(n.Op), members); err != nil {
			return err
		}
	}
	if n := k["ahead"]; n > 0 && n < pl.formed(s) && len(pl.inputs(s, f, k, pl.teams(s, f, k) == 1)) == 0 {
		return fmt.Errorf("cpu: ahead=%d: %w: the layer has too few time steps, or other workers run the input product", n, schedule.ErrKnob)
	}
	if n := k["scanchunk"]; n > 0 && scans && !cut {
		return fmt.Errorf("cpu: scanchunk=%d: %w: this scan is split over channels, not time: set scansplit", n, schedule.ErrKnob)
	}
	if n := k["scanlanes"]; n > 1 && scans && !lanes {
		return fmt.Errorf("cpu: scanlanes=%d: %w: sequences begin anew in the scan: leave it out", n, schedule.ErrKnob)
	}
	return nil
}

// banded declines more bands than there are strips of units or members of a team.
func banded(bands, hidden, members int) error {
	switch strips := ceil(hidden, line); {
	case bands > strips:
		return fmt.Errorf("cpu: bands=%d: %w: %d units make at most %d bands of %d", bands, schedule.ErrKnob, hidden, strips, line)
	case bands > members:
		return fmt.Errorf("cpu: bands=%d: %w: a team has %d workers: set fewer teams", bands, schedule.ErrKnob, members)
	}
	return nil
}

// divided declines numbers of groups that do not divide the members of a team, or exceed the
// sequences.
func divided(k knob.Params, batch, members int) error {
	switch n := k["crews"]; {
	case n == 0:
		return nil
	case k["bands"] > 0 || k["sequences"] > 0:
		return fmt.Errorf("cpu: crews=%d: %w: bands and sequences set the same in another way: omit them", n, schedule.ErrKnob)
	case n > batch:
		return fmt.Errorf("cpu: crews=%d: %w: there are %d sequences", n, schedule.ErrKnob, batch)
	case members%n > 0:
		return fmt.Errorf("cpu: crews=%d: %w: it must divide the %d workers", n, schedule.ErrKnob, members)
	}
	return nil
}

// share returns how many pieces of op each worker of a team gets; 0: op is not shared. It is at
// least one if knobs ask for sharing.
func (pl *planner) share(op schedule.Op, f simd.Format, k knob.Params) int {
	n := pl.pieces(op, f)
	asked := false
	switch op.(type) {
	case schedule.Persistent, schedule.PersistentBackward:
		asked = k["bands"] > 1
		if pl.ownSequences(op, f, k) { // then workers do not meet at each step
			asked = k["sequences"] == 2 || cost(op) >= forkFLOPs
		}
	case schedule.Scan, schedule.ScanBackward:
		asked = k["scansplit"] > 1 || k["scanworkers"] > 1
	}
	if asked {
		return max(1, n)
	}
	return n
}
