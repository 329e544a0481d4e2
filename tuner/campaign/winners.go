package campaign

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner"
)

// Winners is the table of what tuning found.
type Winners struct {
	Records []record.Record // of the winners
	Samples int             // that were taken
	Untimed int             // points at which the budget was spent before a candidate was timed
	Cut     int             // points at which it was spent after a candidate was timed
	Notes   []string

	rows          [][]table.Cell
	behind        bool // some runner-up that ties has the shorter median
	replayed      bool // rows have the columns of a replay
	planned       bool // rows have only the columns of a dry run
	energy        bool // energy was the objective
	dropped       bool // the model dropped candidates of a dry run
	rivals, clear int  // points with a runner-up, and those where the lead is clear
}

// Behind is the note that explains a runner-up with a negative lead.
const Behind = "negative: the runner-up ties; the winner has the faster best half of samples, needs less memory, or won before"

// Points counts the rows.
func (w *Winners) Points() int { return len(w.rows) }

// Tuned counts the points at which a candidate was timed or none can run.
func (w *Winners) Tuned() int { return len(w.rows) - w.Untimed }

// Complete reports whether the budget was never spent.
func (w *Winners) Complete() bool { return w.Cut+w.Untimed == 0 }

// TimedNothing is the text for a point, or for all points, where nothing was timed.
const TimedNothing = "budget exhausted before a candidate was timed"

// Noise says how many winners are clear, if most of them are noisy.
func (w *Winners) Noise() string {
	s := quantity.Standing{Winners: w.rivals, Clear: w.clear, Timed: len(w.Records)}
	for i := range w.Records {
		if slices.Contains(w.Records[i].Warnings, record.WarnNoisy) {
			s.Noisy++
		}
	}
	return s.Headline()
}

// AddCandidates adds a point of a dry run.
func (w *Winners) AddCandidates(p record.Point, candidates, same, dropped int) {
	w.planned = true
	w.dropped = w.dropped || dropped > 0
	w.rows = append(w.rows, []table.Cell{table.Text(p.String()), table.Int(candidates), table.Int(same), table.Int(dropped)})
}

// Add adds a verdict.
func (w *Winners) Add(v *tuner.Verdict) {
	w.rows = append(w.rows, w.row(v))
}

// AddReplay adds the verdict of a replay, with its regret and share of the recording time.
func (w *Winners) AddReplay(r *tuner.Replay) {
	w.replayed = true
	row := w.row(&r.Verdict)
	if r.Winner < 0 {
		w.rows = append(w.rows, append(row, table.Cell{}, table.Cell{}))
		return
	}
	w.rows = append(w.rows, append(row, table.Number(r.Regret(), quantity.Percent(r.Regret())), table.Number(r.Time/r.All, quantity.Percent(r.Time/r.All))))
}

// row makes a row of a verdict.
func (w *Winners) row(v *tuner.Verdict) []table.Cell {
	w.Samples += v.Evaluations
	switch {
	case v.Untimed():
		w.Untimed++
	case !v.Complete:
		w.Cut++
	}
	row := []table.Cell{table.Text(v.Point.String()), {Text: "none"}, {}, {}, {}, {}, {}, {}, tied(v), table.Int(v.Candidates()), table.Int(v.Timed()), table.Int(v.Evaluations), table.Text(remark(v)), {}, table.Int(v.Dropped)}
	r := v.WinnerRecord()
	if r == nil {
		return row
	}
	w.Records = append(w.Records, *r)
	row[1] = table.Text(r.Label())
	t, joules := v.Cost()
	row[2] = table.Number(t, quantity.SI(t, "s"))
	row[3] = table.Number(float64(r.Work.Flops)/t, quantity.SI(float64(r.Work.Flops)/t, "FLOP/s"))
	if joules > 0 {
		w.energy = true
		row[13] = table.Number(joules, quantity.SI(joules, "J"))
	}
	if v.Second >= 0 {
		w.rivals++
		if v.Clear {
			w.clear++
		}
		row[4] = table.Text(v.Records[v.Second].Label())
		w.behind = w.behind || v.Lead < 0
		row[5] = table.Number(v.Lead, Slower(v.Lead))
	}
	if v.Lo != nil {
		row[5].Text += fmt.Sprintf(" (%s to %s)", strings.TrimSuffix(Slower(*v.Lo), " %"), strings.TrimSuffix(Slower(*v.Hi), " %"))
		row[6], row[7] = table.Number(*v.Lo, ""), table.Number(*v.Hi, "")
	}
	return row
}

// Slower formats how much longer a runner-up takes, as a percentage or, from 3 times on, as a factor.
func Slower(lead float64) string {
	if lead >= 2 {
		return quantity.Factor(1 + lead)
	}
	return fmt.Sprintf("%+.1f %%", 100*lead)
}

// tied names the candidates that cannot be told from the winner. Its value is their number.
func tied(v *tuner.Verdict) table.Cell {
	return table.Cell{Text: strings.Join(v.TieLabels(), ", "), Value: len(v.Ties)}
}

// remark says in words what is special about a verdict.
func remark(v *tuner.Verdict) string {
	var words []string
	if !v.Complete {
		words = append(words, "budget exhausted")
	}
	if v.Winner >= 0 && v.Second >= 0 && !v.Clear && len(v.Ties) == 0 {
		words = append(words, "unsure: too few samples")
	}
	if v.Kept {
		words = append(words, "old winner stays: "+v.Records[v.Fastest].Label()+" is not faster by the margin")
	}
	switch {
	case v.Known > 0 && v.Evaluations == 0:
		words = append(words, "known before")
	case v.Known > 0:
		words = append(words, fmt.Sprintf("%d known before", v.Known))
	}
	if v.Dropped > 0 {
		words = append(words, fmt.Sprintf("%d dropped by prediction", v.Dropped))
	}
	return strings.Join(words, "; ")
}

// Table lists the points.
func (w *Winners) Table() *table.Table {
	t := &table.Table{Rows: w.rows, Notes: slices.Concat(w.Notes, quantity.Doubts(quantity.Latest(w.Records)))}
	if w.clear < w.rivals {
		t.Notes = append(t.Notes, fmt.Sprintf("%d of %s clear; the wisdom marks the others as unsure; more time may settle them", w.clear, quantity.Are(w.rivals, "winner")))
	}
	if w.behind {
		t.Notes = append(t.Notes, Behind)
	}
	if w.planned {
		t.Columns = []table.Column{
			{Name: "point", Key: "point"}, {Name: "candidates", Key: "candidates", Right: true}, {Name: "duplicates", Key: "same", Right: true},
			{Key: "dropped", Right: true},
		}
		if w.dropped {
			t.Columns[3].Name = "dropped by prediction"
		}
		return t
	}
	t.Columns = []table.Column{
		{Name: "point", Key: "point"}, {Name: "fastest", Key: "impl"}, {Name: "time", Key: "time_s", Right: true}, {Name: "rate", Key: "flops_per_s", Right: true},
		{Name: "runner-up", Key: "runner_up"}, {Name: "slower by", Key: "lead", Right: true}, {Key: "lead_lo"}, {Key: "lead_hi"},
		{Name: "ties with", Key: "ties"}, {Name: "candidates", Key: "candidates", Right: true}, {Name: "timed", Key: "timed", Right: true}, {Name: "samples", Key: "evaluations", Right: true}, {Key: "remark"}, {Key: "joules"}, {Key: "dropped"},
	}
	if w.energy {
		t.Columns[1].Name, t.Columns[5].Name, t.Columns[13].Name, t.Columns[13].Right = "least energy", "takes more by", "energy", true
	}
	for _, row := range w.rows {
		if row[12].Text != "" {
			t.Columns[12].Name = "remark"
		}
	}
	if w.replayed {
		t.Columns = append(t.Columns, table.Column{Name: "regret", Key: "regret", Right: true}, table.Column{Name: "share of time", Key: "time_share", Right: true})
	}
	return t
}
