package tuner_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/model"
	"rnnbench/record"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
)

// TestImpossible: a time that the machine does not allow is impossible, for a sweep and a tune.
func TestImpossible(t *testing.T) {
	constant := &odd{Device: open(t), sample: func(_ *schedule.Schedule, b device.Sample) device.Sample {
		b.Wall = 10 * time.Microsecond
		return b
	}}
	small := small()
	slow := &model.Machine{Name: "slow", FLOPS: 1, Levels: []model.Level{{P: 2, M: 64}, {P: 1, B: 1}}}
	for code, s := range map[string]*tuner.Sweep{
		record.ReasonPeak:   {Device: open(t), Limits: device.Limits{FLOPS: 1000}},
		record.ReasonBytes:  {Device: open(t), Limits: device.Limits{Copy: 1000}, Machine: slow},
		record.ReasonGrowth: {Device: constant},
	} {
		s.Settings = quick()
		s.Now = ticking(100 * time.Microsecond)
		recs, err := sweep(t, s, context.Background(), []record.Point{small}, specs(t, "naive"))
		if err != nil {
			t.Fatal(err)
		}
		if r := recs[0]; r.Status != record.Impossible || *r.ReasonCode != code || r.Stats != nil || !strings.Contains(*r.Reason, " take") {
			t.Errorf("%s: %s: %+v", code, r.Status, r.Reason)
		}
		u, _ := tune(t, s.Device)
		u.Limits, u.Machine = s.Limits, s.Machine
		v, err := u.Tune(t.Context(), small, specs(t, "naive"), record.Impl{})
		if err != nil {
			t.Fatal(err)
		}
		if code != record.ReasonGrowth && v.WinnerRecord() != nil { // without a warm-up a sample is one run
			t.Errorf("%s: the winner is %s", code, v.WinnerRecord().Label())
		}
	}
}
