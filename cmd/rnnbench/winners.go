package main

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/results"
	"rnnbench/tuner"
)

// winnerFormats are those in which winners are printed; the last prints their
// records.
func winnerFormats() []string { return append(table.Formats(), "jsonl") }

// winners is the table of what tuning found.
type winners struct {
	rows     [][]table.Cell
	records  []results.Record
	replayed bool // the rows have what only a replay knows
	planned  bool // or only what a dry run knows

	regrets *regrets // to print instead; nil: none

	bursts, unfinished, untimed int
	rivals, clear               int // points with a runner-up, and those where the lead is clear
	notes                       []string
}

// label names a record's technique with its settings, as --impl takes it.
func label(r *results.Record) string {
	if r.Impl.Label != "" {
		return r.Impl.Label
	}
	return r.Impl.Name
}

func (w *winners) evaluations() int { return w.bursts }
func (w *winners) complete() bool   { return w.unfinished+w.untimed == 0 }
func (w *winners) cut() int         { return w.unfinished }
func (w *winners) tuned() int       { return len(w.rows) - w.untimed }

// timedNothing is what is said of a point, or of all, where untimed is so.
const timedNothing = "budget exhausted before a candidate was timed"

// untimed reports whether budget exhausted before a candidate was timed, which
// is not that none can run.
func untimed(v *tuner.Verdict) bool { return v.Winner < 0 && !v.Complete }

// noise says how many winners are clear, where most of them are noisy.
func (w *winners) noise() string {
	s := quantity.Standing{Winners: w.rivals, Clear: w.clear, Timed: len(w.records)}
	for i := range w.records {
		if slices.Contains(w.records[i].Warnings, results.WarnNoisy) {
			s.Noisy++
		}
	}
	return s.Headline()
}

// tellNoise says that most records are noisy, where they are.
func (p *program) tellNoise(recs []results.Record) {
	if noise := quantity.StandingOf(quantity.Latest(recs)).Headline(); noise != "" {
		p.note("%s", noise)
	}
}

// plan adds a point of which the candidates are known and no more.
func (w *winners) plan(p results.Point, candidates, same int) {
	w.planned = true
	w.rows = append(w.rows, []table.Cell{table.Text(p.String()), table.Int(candidates), table.Int(same)})
}

// add adds a verdict.
func (w *winners) add(v *tuner.Verdict) {
	w.rows = append(w.rows, w.row(v))
}

// addReplay adds a verdict with what recording everything would have given.
func (w *winners) addReplay(r *tuner.Replay) {
	w.replayed = true
	row := w.row(&r.Verdict)
	if r.Winner < 0 {
		w.rows = append(w.rows, append(row, table.Cell{}, table.Cell{}))
		return
	}
	w.rows = append(w.rows, append(row, table.Number(r.Regret(), quantity.Percent(r.Regret())), table.Number(r.Time/r.All, quantity.Percent(r.Time/r.All))))
}

func (w *winners) row(v *tuner.Verdict) []table.Cell {
	w.bursts += v.Evaluations
	switch {
	case untimed(v):
		w.untimed++
	case !v.Complete:
		w.unfinished++
	}
	row := []table.Cell{table.Text(v.Point.String()), {Text: "none"}, {}, {}, {}, {}, {}, {}, tied(v), table.Int(v.Candidates()), table.Int(v.Timed()), table.Int(v.Evaluations), table.Text(remark(v))}
	r := v.WinnerRecord()
	if r == nil {
		return row
	}
	w.records = append(w.records, *r)
	row[1] = table.Text(label(r))
	t := v.Medians[v.Winner]
	row[2] = table.Number(t, quantity.SI(t, "s"))
	row[3] = table.Number(float64(r.Work.Flops)/t, quantity.SI(float64(r.Work.Flops)/t, "FLOP/s"))
	if v.Second >= 0 {
		w.rivals++
		if v.Lo != nil && *v.Lo > 0 {
			w.clear++
		}
		row[4] = table.Text(label(v.Records[v.Second]))
		row[5] = table.Number(v.Lead, fmt.Sprintf("%+.1f %%", 100*v.Lead))
	}
	if v.Lo != nil {
		row[5].Text += fmt.Sprintf(" (%+.1f to %+.1f)", 100**v.Lo, 100**v.Hi)
		row[6], row[7] = table.Number(*v.Lo, ""), table.Number(*v.Hi, "")
	}
	return row
}

// tied names those that cannot be told from the winner; data have their number.
func tied(v *tuner.Verdict) table.Cell {
	return table.Cell{Text: strings.Join(ties(v), ", "), Value: len(v.Ties)}
}

// ties are the labels of those that cannot be told from the winner.
func ties(v *tuner.Verdict) (list []string) {
	for _, i := range v.Ties {
		if r := v.Records[i]; r != nil {
			list = append(list, label(r))
		}
	}
	return list
}

// remark says what is special about a verdict.
func remark(v *tuner.Verdict) string {
	var words []string
	if !v.Complete {
		words = append(words, "budget exhausted")
	}
	if v.Kept {
		words = append(words, "old winner stays: "+label(v.Records[v.Fastest])+" is not faster by the margin")
	}
	switch {
	case v.Known > 0 && v.Evaluations == 0:
		words = append(words, "known before")
	case v.Known > 0:
		words = append(words, fmt.Sprintf("%d known before", v.Known))
	}
	return strings.Join(words, "; ")
}

// write prints the table.
func (w *winners) write(p *program, format string) error {
	if w.regrets != nil && format != "jsonl" {
		return w.regrets.write(p, format)
	}
	if format == "jsonl" {
		return table.JSONL(p.out, w.records)
	}
	t := &table.Table{Rows: w.rows, Notes: slices.Concat(w.notes, quantity.Doubts(quantity.Latest(w.records)))}
	if w.planned {
		t.Columns = []table.Column{
			{Name: "point", Key: "point"}, {Name: "candidates", Key: "candidates", Right: true}, {Name: "duplicates", Key: "same", Right: true},
		}
		return t.Write(p.out, format, p.style())
	}
	t.Columns = []table.Column{
		{Name: "point", Key: "point"}, {Name: "fastest", Key: "impl"}, {Name: "time", Key: "time_s", Right: true}, {Name: "rate", Key: "flops_per_s", Right: true},
		{Name: "runner-up", Key: "runner_up"}, {Name: "slower by", Key: "lead", Right: true}, {Key: "lead_lo"}, {Key: "lead_hi"},
		{Name: "ties with", Key: "ties"}, {Name: "candidates", Key: "candidates", Right: true}, {Name: "timed", Key: "timed", Right: true}, {Name: "samples", Key: "evaluations", Right: true}, {Key: "remark"},
	}
	for _, row := range w.rows {
		if row[12].Text != "" {
			t.Columns[12].Name = "remark"
		}
	}
	if w.replayed {
		t.Columns = append(t.Columns, table.Column{Name: "regret", Key: "regret", Right: true}, table.Column{Name: "share of time", Key: "time_share", Right: true})
	}
	return t.Write(p.out, format, p.style())
}
