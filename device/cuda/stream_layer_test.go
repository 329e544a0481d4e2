package cuda_test

import (
	"strings"
	"testing"

	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestSpillsStreams: layers whose weights exceed the chip, and their gradients, do not spill
// registers by default.
func TestSpillsStreams(t *testing.T) {
	c := hopper(t)
	for i, l := range []devicetest.Layer{
		{Cell: cell.LSTM, Hidden: 3072, Batch: 8, Precision: schedule.BF16},
		{Cell: cell.LSTM, Hidden: 2304, Batch: 5, Precision: schedule.FP32},
		{Cell: cell.LSTM, Hidden: 2304, Batch: 5, Precision: schedule.BF16},
		{Cell: cell.LSTM, Hidden: 3072, Batch: 32, Train: true, Precision: schedule.FP16},
		{Cell: cell.LSTM, Hidden: 2048, Batch: 8, Precision: schedule.FP32},
		{Cell: cell.LSTM, Hidden: 2304, Batch: 16, Precision: schedule.FP32},
		{Cell: cell.GRU, Hidden: 3072, Batch: 8, Precision: schedule.BF16},
		{Cell: cell.GRU, Hidden: 3072, Batch: 32, Train: true, Precision: schedule.BF16},
		{Cell: cell.GRU, Hidden: 2816, Batch: 16, Precision: schedule.FP32},
		{Cell: cell.RNNTanh, Hidden: 5000, Batch: 8, Precision: schedule.BF16},
		{Cell: cell.RNNReLU, Hidden: 5000, Batch: 8, Precision: schedule.BF16},
		{Cell: cell.LSTM, Hidden: 2304, Batch: 8, Backward: true, Precision: schedule.BF16},
		{Cell: cell.LSTM, Hidden: 2304, Batch: 8, Backward: true, Precision: schedule.FP32},
		{Cell: cell.GRU, Hidden: 3072, Batch: 32, Backward: true, Precision: schedule.FP16},
		{Cell: cell.LSTM, Hidden: 3072, Batch: 8, Backward: true, Precision: schedule.BF16},
		{Cell: cell.LSTM, Hidden: 2048, Batch: 32, Backward: true, Precision: schedule.FP32},
	} {
		if testing.Short() && i%4 != 0 {
			continue
		}
		l.Steps = 16
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			launches, texts := sources(t, l, nil)
			last := len(launches) - 1
			for ; last >= 0 && !strings.Contains(launches[last].Name, "_stream_"); last-- {
			}
			if last < 0 {
				t.Fatal("no weights are streamed")
			}
			t.Logf("%d registers; %s", recorded(t, c, registerRecord, launches[last], texts[last]), strings.SplitN(texts[last][strings.Index(texts[last], "struct Config"):], "\n", 2)[0])
			if n := recorded(t, c, stackRecord, launches[last], texts[last]); n > 0 {
				t.Errorf("%d bytes of stack", n)
			}
		})
	}
}
