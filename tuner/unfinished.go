package tuner

import "rnnbench/record"

// recordInterrupted records the entrants of an interrupted point that have samples. A later tune
// measures them again, but takes these samples as a prior.
func (c *contest) recordInterrupted() error {
	for i, e := range c.entrants {
		if e.candidate == nil || e.record.Status != record.OK || len(e.samples.Wall) == 0 {
			continue
		}
		c.conclude(e, stopInterrupted)
		if err := c.finish(i); err != nil {
			return err
		}
	}
	return nil
}

// interruptedRecords returns the records of candidates whose point was interrupted. All are of one run,
// so that they are comparable; records of other runs are left out.
func (t *Tune) interruptedRecords(all []*contender) (list []*record.Record) {
	if t.Recall == nil || t.joules != nil { // an interrupted tune has few energy samples
		return nil
	}
	for _, e := range all {
		r := t.Recall(e.key)
		if r == nil || r.Mode.Objective != t.Objective || r.Status != record.OK || r.Verify == nil || !r.Verify.OK || r.Samples == nil || r.Stats == nil || r.Stats.Stop != stopInterrupted {
			continue
		}
		if len(list) > 0 && list[0].Run != r.Run {
			continue
		}
		list = append(list, r)
	}
	return list
}

// Supersedes reports whether r replaces old, which has the same key. The newer one counts, but an
// interrupted record never replaces a whole one.
func Supersedes(r, old *record.Record) bool {
	cut := func(r *record.Record) bool { return r.Stats != nil && r.Stats.Stop == stopInterrupted }
	if cut(r) != cut(old) {
		return cut(old)
	}
	return r.Time.After(old.Time)
}

// CanRun counts the candidates among records of one point: all that no technique or device declined.
func CanRun(recs []*record.Record) (n int) {
	for _, r := range recs {
		if r == nil || r.Status != record.Skipped || r.ReasonCode != nil && (*r.ReasonCode == record.ReasonBound || *r.ReasonCode == record.ReasonUnlikely) {
			n++
		}
	}
	return n
}

// Candidates counts the candidates that can run, as Tune.Candidates does in advance.
func (v *Verdict) Candidates() int { return CanRun(v.Records) }

// Timed counts the candidates that were measured, now or in an earlier run.
func (v *Verdict) Timed() (n int) {
	for _, m := range v.Medians {
		if m > 0 {
			n++
		}
	}
	return n
}
