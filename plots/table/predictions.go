package table

import (
	"fmt"

	"rnnbench/model"
	"rnnbench/plots/quantity"
)

// Predictions returns a table of the model's predictions of steps on m.
func Predictions(m *model.Machine, list []model.Prediction) *Table {
	t := &Table{
		Title: "Predicted steps on " + m.Name,
		Columns: []Column{
			{Name: "variant", Key: "variant"}, {Name: "cell", Key: "cell"}, {Name: "precision", Key: "precision"},
			{Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true},
			{Name: "tiling", Key: "tiling"}, {Name: "weights in", Key: "home"}, {Name: "each", Key: "share_bytes", Right: true},
			{Name: "", Key: "resident"},
			{Name: "products", Key: "compute_s", Right: true}, {Name: "weights", Key: "weights_s", Right: true},
			{Name: "inputs", Key: "stream_s", Right: true},
			{Name: "exchange", Key: "exchange_s", Right: true}, {Name: "latency", Key: "sync_s", Right: true},
			{Name: "point-wise", Key: "pointwise_s", Right: true}, {Name: "step", Key: "step_s", Right: true},
			{Name: "throughput", Key: "flops_per_s", Right: true}, {Name: "of peak", Key: "of_peak", Right: true}, {Name: "limit", Key: "limit"},
		},
		Notes: []string{"machine: " + m.Source, "throughput counts recurrent products only; a tiling is rows × columns (/ parts of the batch), from the outermost level"},
	}
	for _, x := range list {
		s := x.Step
		seconds := func(v float64) Cell { return Number(v, quantity.SI(v, "s")) }
		t.Rows = append(t.Rows, []Cell{
			Text(x.Variant), Text(x.Cell), Text(x.Precision), Int(s.Work.Hidden), Int(s.Work.Batch),
			Text(s.Tiling.String()), Text(s.Home), Number(s.Share, quantity.Bytes(s.Share)), {Value: s.Resident},
			seconds(s.Compute), seconds(s.Weights), seconds(s.Stream), seconds(s.Exchange), seconds(s.Sync), seconds(s.Pointwise), seconds(s.Time),
			Number(s.FLOPS(), quantity.SI(s.FLOPS(), "FLOP/s")), Number(s.FLOPS()/x.Peak, fmt.Sprintf("%.0f %%", 100*s.FLOPS()/x.Peak)),
			Text(s.Limit),
		})
	}
	return t
}

// BandNotes returns the model's prediction of a step in bands as sentences.
func BandNotes(x *model.Bands) []string {
	seconds := func(v float64) string { return quantity.SI(v, "s") }
	where := fmt.Sprintf("weights: %s stay in %s", quantity.Bytes(x.Share), x.Home)
	if x.Resident {
		where = fmt.Sprintf("weights: %s for each worker stay in its %s", quantity.Bytes(x.Share), x.Home)
	} else {
		where += ", which is shared"
	}
	return []string{
		fmt.Sprintf("%s; %s has room for %s of weights of each worker, enough for %s", where, x.RoomIn, quantity.Bytes(x.Room), quantity.Plural(x.Largest, "unit")),
		fmt.Sprintf("predicted step of one layer in bands of units: %s, the sum of weights %s or products %s (the longer one), state exchange %s, barrier %s, input products %s, point-wise %s",
			seconds(x.Step), seconds(x.Weights), seconds(x.Compute), seconds(x.Exchange), seconds(x.Sync), seconds(x.Stream), seconds(x.Pointwise)),
	}
}
