package explain

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"rnnbench/device"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
)

// Measured is where the time of a run went. Times are means, in seconds.
type Measured struct {
	Workers    int           `json:"workers"`
	Teams      int           `json:"teams"`
	Runs       int           `json:"runs"`
	Run        float64       `json:"run_s"`
	Plain      float64       `json:"plain_run_s"` // of a run whose operations are not measured
	Operations []MeasuredOps `json:"operations"`  // the longest first
	Sum        float64       `json:"operations_s"`
	Outside    float64       `json:"outside_s"`  // per team, in no operation
	Idle       float64       `json:"idle_share"` // of the workers' time
}

// MeasuredOps are the operations of one kind and size in a run.
type MeasuredOps struct {
	Name      string   `json:"name"`
	Count     int      `json:"count"`
	Within    int      `json:"within"` // further operations that run as part of these
	Seconds   float64  `json:"seconds"`
	Each      float64  `json:"each_s"`
	Share     float64  `json:"share"`
	FLOPRate  float64  `json:"flops_per_s"`
	ByteRate  float64  `json:"bytes_per_s"`
	Busy      float64  `json:"busy_share"` // of the time of the team that runs them
	Predicted *float64 `json:"predicted_s"`
}

// Measure runs l on d and adds the time of each operation.
func (e *Explanation) Measure(ctx context.Context, d device.Device, l *tuner.Layout, m config.Measure) error {
	if e.Declined != nil {
		return nil
	}
	p, err := tuner.NewProfile(ctx, d, l, m)
	if err != nil {
		return err
	}
	e.Measured = measured(p)
	return nil
}

func measured(p *tuner.Profile) *Measured {
	m := &Measured{
		Workers: p.Workers, Teams: p.Teams, Runs: p.Runs, Run: p.Run, Plain: p.Plain,
		Sum: p.Operations(), Outside: p.Outside(), Idle: p.Idle(), Operations: []MeasuredOps{},
	}
	for _, g := range p.Groups {
		taken := max(g.Taken, 1e-12)
		m.Operations = append(m.Operations, MeasuredOps{
			Name: g.Name, Count: g.Count, Within: g.Within, Seconds: g.Taken, Each: g.Taken / float64(g.Count),
			Share: g.Taken / (p.Run * float64(p.Teams)), FLOPRate: float64(g.FLOPs) / taken, ByteRate: float64(g.Bytes) / taken,
			Busy: g.Busy * float64(p.Teams) / (taken * float64(p.Workers)), Predicted: orNil(g.Predicted),
		})
	}
	slices.SortStableFunc(m.Operations, func(a, b MeasuredOps) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return m
}

// mostMeasured is how many groups of operations the text lists. JSON has all.
const mostMeasured = 20

// differs is the relative difference between runs with and without the measurement that is remarked on.
const differs = 0.1

// table is m as a table.
func (m *Measured) table() *table.Table {
	t := &table.Table{Title: "Measured time of operations", Columns: []table.Column{
		{Name: "operation", Key: "op"}, {Name: "count", Key: "count", Right: true}, {Name: "each", Key: "each_s", Right: true}, {Name: "share", Key: "share", Right: true},
		{Name: "rate", Key: "rate", Right: true}, {Name: "model", Key: "predicted_s", Right: true},
	}}
	within, left, rest := 0, 0, 0.0
	for i, op := range m.Operations {
		within += op.Within
		if i >= mostMeasured {
			left, rest = left+op.Count, rest+op.Share
			continue
		}
		rate := table.Number(op.FLOPRate, quantity.SI(op.FLOPRate, "FLOP/s"))
		if op.FLOPRate == 0 {
			rate = table.Number(op.ByteRate, quantity.SI(op.ByteRate, "B/s"))
		}
		predicted := table.Text("")
		if op.Predicted != nil {
			each := *op.Predicted / float64(op.Count)
			predicted = table.Number(each, quantity.SI(each, "s"))
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(op.Name), table.Int(op.Count), table.Number(op.Each, quantity.SI(op.Each, "s")), share(op.Share), rate, predicted})
	}
	none := table.Text("")
	if left > 0 {
		t.Rows = append(t.Rows, []table.Cell{table.Text("others"), table.Int(left), none, share(rest), none, none})
	}
	t.Rows = append(t.Rows, []table.Cell{table.Text("outside"), none, none, share(m.Outside / m.Run), none, none})
	t.Notes = m.notes(within)
	return t
}

func share(v float64) table.Cell { return table.Number(v, quantity.Percent(v)) }

// notes says what the rows mean and how far to trust them. within is how many operations run as part
// of others.
func (m *Measured) notes(within int) []string {
	seconds := func(v float64) string { return quantity.SI(v, "s") }
	notes := []string{fmt.Sprintf("a run takes %s with this measurement and %s without (%+.1f %%); %s on %s",
		seconds(m.Run), seconds(m.Plain), 100*(m.Run/m.Plain-1), plural(m.Runs, "run"), plural(m.Workers, "worker"))}
	if math.Abs(m.Run/m.Plain-1) > differs {
		notes = append(notes, "the two differ: other programs disturb them, or operations are so short that reading the clock counts")
	}
	if m.Teams > 1 {
		notes = append(notes, fmt.Sprintf("operations take %s in all; %d teams of workers run them at the same time, and shares are of the time of all teams", seconds(m.Sum), m.Teams))
	} else {
		notes = append(notes, fmt.Sprintf("operations take %s in all, %s of a run without this measurement", seconds(m.Sum), quantity.Percent(m.Sum/m.Plain)))
	}
	notes = append(notes, "outside: handing out operations and waiting for other streams; barriers within an operation are part of it")
	if m.Workers > 1 {
		notes = append(notes, fmt.Sprintf("workers have nothing to do in %s of their time: no share of an operation, or one shorter than the others'", quantity.Percent(m.Idle)))
	}
	if within > 0 {
		notes = append(notes, fmt.Sprintf("%s more run as part of others, whose rates count them", plural(within, "operation")))
	}
	return append(notes, "rate: FLOP/s or, without FLOPs, bytes read and written; model: the predicted time of each")
}
