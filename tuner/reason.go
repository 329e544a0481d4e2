package tuner

import (
	"errors"

	"rnnbench/results"
	"rnnbench/rnn/schedule"
)

// ReasonOf is the reason code of an error that declines work; otherwise, if the error names no cause.
func ReasonOf(err error, otherwise string) string {
	for _, r := range []struct {
		fault error
		code  string
	}{
		{schedule.ErrKnob, results.ReasonKnob}, {schedule.ErrCell, results.ReasonCell}, {schedule.ErrInput, results.ReasonInput},
		{schedule.ErrHistory, results.ReasonHistory}, {schedule.ErrHeads, results.ReasonHeads}, {schedule.ErrProjection, results.ReasonProjection}, {schedule.ErrCalls, results.ReasonCalls}, {schedule.ErrPrecision, results.ReasonPrecision},
		{schedule.ErrDevice, results.ReasonDevice}, {schedule.ErrLibrary, results.ReasonLibrary},
		{schedule.ErrDirection, results.ReasonDirection}, {schedule.ErrLengths, results.ReasonLengths}, {schedule.ErrResets, results.ReasonResets},
	} {
		if errors.Is(err, r.fault) {
			return r.code
		}
	}
	return otherwise
}
