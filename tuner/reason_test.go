package tuner_test

import (
	"context"
	"errors"
	"testing"

	"rnnbench/record"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
)

// TestReasonCodes checks that the reason code of a declined point names the cause.
func TestReasonCodes(t *testing.T) {
	lstm, history, streams, hot, window := small(), small(), small(), small(), small()
	history.History, history.Pass = 2, "train"
	streams.Streams = 4
	hot.OneHot = true
	window.Cell, window.OneHot = "qrnn2", true
	half := small()
	half.Precision = "fp16"
	for _, c := range []struct {
		point      record.Point
		impl, code string
	}{
		{lstm, "scan", record.ReasonCell},
		{history, "naive", record.ReasonHistory},
		{streams, "naive", record.ReasonStreams},
		{hot, "cudnn", record.ReasonInput},
		{window, "naive", record.ReasonInput},
		{half, "naive", record.ReasonPrecision},
	} {
		s := &tuner.Sweep{Device: open(t), Settings: quick()}
		recs, err := sweep(t, s, context.Background(), []record.Point{c.point}, specs(t, c.impl))
		if err != nil {
			t.Fatal(err)
		}
		if r := recs[0]; r.Status != record.Skipped || *r.ReasonCode != c.code {
			t.Errorf("%v %s: %s %v, want %s", c.point, c.impl, r.Status, r.Reason, c.code)
		}
	}
}

// TestDeclines checks that each fault is an ErrUnsupported and no other fault.
func TestDeclines(t *testing.T) {
	all := schedule.Declines()
	for i, a := range all {
		if !errors.Is(a, schedule.ErrUnsupported) {
			t.Errorf("fault %d is none", i)
		}
		for j, b := range all {
			if i != j && errors.Is(a, b) {
				t.Errorf("fault %d is %d as well", i, j)
			}
		}
	}
}
