package tuner

import "rnnbench/results"

// abandon records those of an interrupted point that have samples. They are not
// known by that: a later tune expects of them what they showed.
func (c *contest) abandon() error {
	for i, e := range c.entrants {
		if e.candidate == nil || e.record.Status != results.OK || len(e.samples.Wall) == 0 {
			continue
		}
		c.conclude(e, stopInterrupted)
		if err := c.finish(i); err != nil {
			return err
		}
	}
	return nil
}

// begun are the records of candidates whose point was interrupted: of one moment,
// so that they are rivals of each other. Those of another moment are left out.
func (t *Tune) begun(all []*contender) (list []*results.Record) {
	if t.Recall == nil || t.joules != nil { // joules of one moment are few
		return nil
	}
	for _, e := range all {
		r := t.Recall(e.key)
		if r == nil || r.Mode.Objective != t.Objective || r.Status != results.OK || r.Verify == nil || !r.Verify.OK || r.Samples == nil || r.Stats == nil || r.Stats.Stop != stopInterrupted {
			continue
		}
		if len(list) > 0 && list[0].Run != r.Run {
			continue
		}
		list = append(list, r)
	}
	return list
}

// Supersedes reports whether r counts in the place of old, which has the same key: the
// newer one, but what was interrupted in the place of nothing that is whole.
func Supersedes(r, old *results.Record) bool {
	cut := func(r *results.Record) bool { return r.Stats != nil && r.Stats.Stop == stopInterrupted }
	if cut(r) != cut(old) {
		return cut(old)
	}
	return r.Time.After(old.Time)
}

// CanRun counts the candidates among records of one point: all but those that a
// technique or the device declined.
func CanRun(recs []*results.Record) (n int) {
	for _, r := range recs {
		if r == nil || r.Status != results.Skipped || r.ReasonCode != nil && (*r.ReasonCode == results.ReasonBound || *r.ReasonCode == results.ReasonUnlikely) {
			n++
		}
	}
	return n
}

// Candidates counts those that can run, as Tune.Candidates does before they do.
func (v *Verdict) Candidates() int { return CanRun(v.Records) }

// Timed counts those that were measured, today or before.
func (v *Verdict) Timed() (n int) {
	for _, m := range v.Medians {
		if m > 0 {
			n++
		}
	}
	return n
}
