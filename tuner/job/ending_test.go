package job

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner"
)

// noisyRecords returns records of two techniques at two points that are too noisy to compare.
func noisyRecords() []record.Record {
	var recs []record.Record
	for hidden := 8; hidden <= 16; hidden += 8 {
		for i, name := range []string{"naive", "cudnnstyle"} {
			lo, hi := 0.5, 5.0
			recs = append(recs, record.Record{
				Point: record.Point{Hidden: hidden}, Impl: record.Impl{Name: name}, Status: record.OK, Warnings: []string{record.WarnNoisy},
				Stats: &record.Stats{Median: float64(1 + i), Lo: &lo, Hi: &hi},
			})
		}
	}
	return recs
}

// A listener keeps what it is told.
type listener struct {
	Teller
	notes []string
}

func (l *listener) Note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// TestNoiseIsTold: a run of noisy records ends with a note about the noise.
func TestNoiseIsTold(t *testing.T) {
	said := &listener{}
	j, recs := Job{Request: &Request{}, tell: said}, noisyRecords()
	if err := j.Conclude(&Ending{Records: recs, planned: len(recs)}, ""); err != nil {
		t.Fatal(err)
	}
	if want := []string{"0 of 2 winners are clear; 4 of 4 records are noisy: run rnnbench doctor"}; !slices.Equal(said.notes, want) {
		t.Errorf("said %q, want %q", said.notes, want)
	}
	recs[0].Warnings, recs[1].Warnings, said.notes = nil, nil, nil
	if err := j.Conclude(&Ending{Records: recs, planned: len(recs)}, ""); err != nil || len(said.notes) > 0 {
		t.Errorf("half of the records are noisy: %q, %v", said.notes, err)
	}
}

// TestOutcome: statuses and errors give the exit code.
func TestOutcome(t *testing.T) {
	rec := func(list ...record.Status) (recs []record.Record) {
		for _, s := range list {
			recs = append(recs, record.Record{Status: s})
		}
		return recs
	}
	stop := fmt.Errorf("stopped as --on-error stop asks")
	for _, c := range []struct {
		recs           []record.Record
		err            error
		stopped, allow bool
		want           int
	}{
		{recs: rec(record.OK), want: exit.Done},
		{recs: rec(record.OK, record.Skipped), want: exit.Done},
		{recs: rec(record.Skipped), want: exit.Error},
		{recs: nil, want: exit.Error},
		{recs: rec(record.Failed), want: exit.Error},
		{recs: rec(record.Failed), allow: true, want: exit.Error},
		{recs: rec(record.OK, record.Failed), want: exit.Failures},
		{recs: rec(record.OK, record.Incorrect), want: exit.Failures},
		{recs: rec(record.OK, record.Timeout), want: exit.Failures},
		{recs: rec(record.OK, record.Timeout), allow: true, want: exit.Done},
		{recs: rec(record.OK), err: context.Canceled, want: exit.Interrupted},
		{recs: nil, err: context.Canceled, want: exit.Interrupted},
		{recs: rec(record.OK), err: tuner.ErrBudget, want: exit.Done},
		{recs: rec(record.OK), err: os.ErrClosed, want: exit.Error},
		{recs: rec(record.OK, record.Failed), err: stop, stopped: true, want: exit.Failures},
		{recs: rec(record.OK, record.Failed), err: stop, want: exit.Error},
	} {
		if code, err := Outcome(c.recs, c.err, c.stopped, c.allow); code != c.want || (err == nil) != (code == exit.Done) {
			t.Errorf("%+v: %d, %v", c, code, err)
		}
	}
	for _, c := range []struct {
		recs  []record.Record
		err   error
		allow bool
		want  int
	}{
		{recs: rec(record.OK, record.Skipped), want: exit.Done},
		{recs: rec(record.OK, record.Incorrect), want: exit.Failures},
		{recs: rec(record.Incorrect, record.Incorrect), want: exit.Failures},
		{recs: rec(record.Incorrect, record.Skipped), allow: true, want: exit.Failures},
		{recs: rec(record.OK, record.Incorrect), allow: true, want: exit.Done},
		{recs: rec(record.Incorrect), err: stop, want: exit.Failures},
		{recs: rec(record.Incorrect), err: context.Canceled, want: exit.Interrupted},
		{recs: rec(record.Skipped), want: exit.Error},
		{recs: rec(record.Failed), want: exit.Error},
	} {
		if code, err := OutcomeOfChecks(c.recs, c.err, c.err == stop, c.allow); code != c.want || (err == nil) != (code == exit.Done) {
			t.Errorf("verify of %+v: %d, %v", c, code, err)
		}
	}
}
