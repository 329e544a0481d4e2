package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rnnbench/internal/exit"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/tuner"
)

// An Ending is the outcome of a run.
type Ending struct {
	Records []record.Record // all records of the run
	Missing int             // of those planned
	Format  string          // in which the records were printed; "": they were not
	Code    int             // exit code
	Outcome error           // why Code is not 0

	planned int    // records and networks
	lacks   string // the words for Missing
	spent   bool   // the budget was spent before the run was complete
}

// Conclude tells what is missing and that the command again resumes the run. It returns the outcome.
func (j *Job) Conclude(e *Ending, again string) error {
	if noise := quantity.StandingOf(quantity.Latest(e.Records)).Headline(); noise != "" {
		j.tell.Note("%s", noise)
	}
	hint := ""
	if e.Missing > 0 {
		hint = again + " resumes the run"
	} else if slices.ContainsFunc(e.Records, func(r record.Record) bool { return r.Passing() }) {
		hint = again + " retries points whose worker was lost"
	}
	if e.spent {
		j.tell.Note("budget of %v exhausted; %d of %d %s", j.Config.Measure.Budget, e.Missing, e.planned, e.lacks)
	}
	return j.end(e.Code, e.Outcome, hint, func() string { return Reasons(e.Records, e.Format) })
}

// end returns the outcome with a hint, or tells the hint where all is well. Without a hint, why gives one.
func (j *Job) end(code int, outcome error, hint string, why func() string) error {
	switch {
	case outcome == nil && hint != "":
		j.tell.Note("hint: %s", hint)
		return nil
	case outcome == nil:
		return nil
	case hint == "":
		hint = why()
	}
	return exit.With(code, outcome, hint)
}

// Outcome returns the exit code for a run's records and error, and an error that says why it is
// not 0. stopped: the run stops at the first failure. allow: a failed point is no error.
func Outcome(recs []record.Record, err error, stopped, allow bool) (int, error) {
	count := map[record.Status]int{}
	for i := range recs {
		count[recs[i].Status]++
	}
	bad := count[record.Failed] + count[record.Incorrect] + count[record.Impossible] + count[record.Timeout]
	var kinds []string
	for _, s := range []record.Status{record.Failed, record.Incorrect, record.Impossible, record.Timeout, record.NotConverged, record.Skipped} {
		if count[s] > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return exit.Interrupted, errors.New("interrupted")
	case err != nil && !errors.Is(err, tuner.ErrBudget) && !(stopped && bad > 0):
		return exit.Error, err
	case bad > 0 && allow && count[record.OK] > 0:
		return exit.Done, nil
	case len(recs) == 0:
		return exit.Error, errors.New("nothing was measured")
	case count[record.OK] == 0:
		return exit.Error, fmt.Errorf("no point succeeded: %s", strings.Join(kinds, ", "))
	case err != nil && !errors.Is(err, tuner.ErrBudget):
		return exit.Failures, err
	case bad > 0:
		return exit.Failures, fmt.Errorf("some of %s did not succeed: %s", quantity.Plural(len(recs), "record"), strings.Join(kinds, ", "))
	}
	return exit.Done, nil
}

// verdictCode is exitCode, but returns exit.Failures also if every answer is wrong.
func OutcomeOfChecks(recs []record.Record, err error, stopped, allow bool) (int, error) {
	code, outcome := Outcome(recs, err, stopped, allow)
	if code == exit.Error && slices.ContainsFunc(recs, func(r record.Record) bool { return r.Status.Wrong() }) {
		code = exit.Failures
	}
	return code, outcome
}

// Reasons joins up to three distinct reasons of records without a result. It leaves out skipped
// points if format is a table or Markdown, which lists them itself.
func Reasons(recs []record.Record, format string) string {
	told := format == "table" || format == "markdown"
	var list []string
	for i := range recs {
		r := &recs[i]
		if r.Status == record.OK || r.Status == record.Skipped && told || r.Reason == nil || len(list) == 3 {
			continue
		}
		reason := *r.Reason
		if r.Status == record.Skipped {
			reason = quantity.Label(r) + ": " + quantity.PlainReason(r.Impl.Name, reason)
		}
		if !slices.Contains(list, reason) {
			list = append(list, reason)
		}
	}
	return strings.Join(list, "; ")
}

// counts formats how many records have each status.
func counts(recs []record.Record) string {
	var parts []string
	for _, s := range record.Statuses() {
		n := 0
		for i := range recs {
			if recs[i].Status == s {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
