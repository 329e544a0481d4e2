package tuner

import (
	"errors"

	"rnnbench/record"
	"rnnbench/rnn/schedule"
)

// ReasonOf is the reason code of an error that declines work; otherwise, if the error names no cause.
func ReasonOf(err error, otherwise string) string {
	for _, r := range []struct {
		fault error
		code  string
	}{
		{schedule.ErrKnob, record.ReasonKnob}, {schedule.ErrCell, record.ReasonCell}, {schedule.ErrInput, record.ReasonInput},
		{schedule.ErrHistory, record.ReasonHistory}, {schedule.ErrHeads, record.ReasonHeads}, {schedule.ErrProjection, record.ReasonProjection}, {schedule.ErrSkip, record.ReasonSkip}, {schedule.ErrLookahead, record.ReasonLookahead}, {schedule.ErrNorm, record.ReasonNorm}, {schedule.ErrCalls, record.ReasonCalls}, {schedule.ErrPrecision, record.ReasonPrecision},
		{schedule.ErrDevice, record.ReasonDevice}, {schedule.ErrLibrary, record.ReasonLibrary},
		{schedule.ErrDirection, record.ReasonDirection}, {schedule.ErrLengths, record.ReasonLengths}, {schedule.ErrResets, record.ReasonResets},
	} {
		if errors.Is(err, r.fault) {
			return r.code
		}
	}
	return otherwise
}
