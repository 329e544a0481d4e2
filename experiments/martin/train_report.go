package martin

import (
	"fmt"
	"math"
	"strings"

	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// lossTable is Table 1, with the paper's numbers in brackets.
func lossTable(all []learned) *table.Table {
	t := &table.Table{
		Title: "Losses in nats and accuracies in %, with the paper's after up to 18 hours in brackets",
		Columns: []table.Column{{Name: "Network", Key: "network"}, show.Column("H", "hidden"), show.Column("B", "batch"), show.Column("Seconds", "wall_s"), show.Column("Iterations", "iterations"),
			show.Column("Million events", "events"), show.Column("Train", "train_loss"), show.Column("Held-out", "held_out_loss"), show.Column("Top-1", "top1"), show.Column("Top-5", "top5"), show.Column("Top-20", "top20")},
	}
	with := func(l learned, v float64, format string, paper float64) table.Cell {
		c := show.Number(v, format)
		if !math.IsNaN(v) && paper > 0 && l.paper == l.steps { // else it is of another size
			c.Text += fmt.Sprintf(" ("+format+")", paper)
		}
		return c
	}
	for _, l := range all {
		last, s := l.last(), record.Score{Loss: math.NaN(), Top1: math.NaN(), Top5: math.NaN(), Top20: math.NaN()}
		if last.HeldOut != nil {
			s = *last.HeldOut
		}
		t.Rows = append(t.Rows, []table.Cell{
			table.Text(l.label), table.Int(l.hidden), table.Int(l.batch), show.Number(last.Wall, "%.0f").Of(&l.records[len(l.records)-1]), table.Int(last.Iterations), show.Digits(float64(last.Frames)/1e6, 3),
			with(l, l.train.last().Value, "%.3f", l.paperTrain), with(l, s.Loss, "%.3f", l.test),
			with(l, 100*s.Top1, "%.2f", 0), with(l, 100*s.Top5, "%.2f", l.top5), with(l, 100*s.Top20, "%.2f", l.top20),
		})
	}
	return t
}

// soonerTable shows how much sooner the LS-LSTM learns than each LSTM.
func soonerTable(ls learned, lstms []learned) *table.Table {
	t := &table.Table{
		Title: "Time to equal loss: the lowest held-out loss that both reach",
		Columns: []table.Column{{Name: "LSTM", Key: "network"}, show.Column("Loss", "held_out_loss"), show.Column("LS-LSTM, s", "ls_lstm_s"), show.Column("LSTM, s", "lstm_s"), show.Column("×", "sooner"),
			show.Column("× step by step (computed)", "sooner_slow")},
	}
	bounded := func(v float64, format, bound string) table.Cell {
		c := show.Number(v, format)
		if !math.IsNaN(v) && bound != "" {
			c.Text = map[string]string{"at least ": "≥ ", "at most ": "≤ "}[bound] + c.Text
		}
		return c
	}
	early := map[bool]string{true: "at most "}
	for _, l := range lstms {
		s := soonerOf(ls, l)
		t.Rows = append(t.Rows, []table.Cell{table.Text(l.label), show.Number(s.level, "%.3f"), bounded(s.a, "%.3g", early[s.ea]), bounded(s.b, "%.3g", early[s.eb]),
			bounded(s.times(), "%.2f", s.bound()), bounded(s.times()*l.slower(), "%.2f", s.bound())})
	}
	return t
}

// slower is how much longer an iteration takes if the LSTM runs as the paper's did; not a number:
// it was not measured.
func (l learned) slower() float64 {
	if l.slow == nil {
		return math.NaN()
	}
	return (l.seconds() + l.slow.Seconds() - l.pass) / l.seconds()
}

// speedTable compares whole iterations with forward and backward alone.
func speedTable(all []learned) *table.Table {
	t := &table.Table{
		Title: "Iterations: feeding, update and reading the loss included, beside forward and backward alone",
		Columns: []table.Column{{Name: "Network", Key: "network"}, show.Column("Iterations/s", "iterations_per_s"), show.Column("1000 events/s", "events_per_s"), show.Column("ms an iteration", "iteration_ms"),
			show.Column("ms a pass", "pass_ms"), show.Column("Rest, %", "rest_pct")},
	}
	for _, l := range all {
		each := l.seconds()
		t.Rows = append(t.Rows, []table.Cell{
			table.Text(l.label), show.Digits(1/each, 4).Of(&l.records[len(l.records)-1]), show.Digits(float64(l.batch*l.steps)/each/1000, 4), show.Digits(1000*each, 4),
			show.Digits(1000*l.pass, 4), show.Number(l.rest(), "%.1f"),
		})
	}
	return t
}

// soonerFindings compares the time to equal held-out loss.
func soonerFindings(rep *study.Report, ls learned, lstms []learned) {
	var each, slow, better []string
	for _, l := range lstms {
		s := soonerOf(ls, l)
		x := s.times()
		if math.IsNaN(x) {
			continue // one of them was not evaluated, or too late
		}
		each = append(each, fmt.Sprintf("%s%s× for %s", s.bound(), quantity.Ratio(x), l.label))
		if x *= l.slower(); !math.IsNaN(x) {
			slow = append(slow, fmt.Sprintf("%s%s× for %s", s.bound(), quantity.Ratio(x), l.label))
		}
		if ls.held.least() < l.held.least() {
			better = append(better, l.label)
		}
	}
	if each == nil {
		return
	}
	rep.Findings = append(rep.Findings, fmt.Sprintf("Time of an LSTM to the lowest held-out loss that both reach, over that of the LS-LSTM: %s. The paper compares training losses alone.", strings.Join(each, ", ")))
	if slow != nil {
		rep.Findings = append(rep.Findings, "Computed from the times of the passes, if the LSTMs ran step by step: "+strings.Join(slow, ", ")+".")
	}
	of := "no LSTM"
	if better != nil {
		of = strings.Join(better, "; ")
	}
	rep.Findings = append(rep.Findings, "The lowest held-out loss of the LS-LSTM is below that of: "+of+".")
}

// incomparable says what cannot be compared with the paper.
func incomparable(rep *study.Report, all []learned, on study.Target) {
	longest, size := 0.0, study.Full
	if on.Reduced {
		size = study.Quick
	}
	for _, l := range all {
		longest = max(longest, l.last().Wall)
	}
	why := fmt.Sprintf("the events are of a generated camera, not of N-MNIST, and a network trains for %.0f s, not for up to 18 hours", longest)
	if early := unfinished(all, on); early != "" {
		rep.Findings = append(rep.Findings, early)
	}
	weights := "First weights are those of Glorot and Bengio, as in the paper."
	if !all[0].last().Glorot {
		weights = "First weights are uniform within 1/√H; the paper's are Glorot's. For an LSTM of 256 units these bounds are 0.063 and 0.067."
	}
	rep.Findings = append(rep.Findings,
		"Losses and accuracies are not comparable with the paper's: "+why+"."+map[bool]string{false: " The brackets show the paper's for orientation."}[on.Reduced],
		fmt.Sprintf("Held-out losses of all networks are means over the steps after the burn-in of sequences of %d steps. The paper does not say how long the sequences of its test were.", heldSteps(size)),
		"Not stated by the paper, and chosen here: Adam's learning rate, one for all networks, and initial states of 0. "+weights)
	if s := all[0].last().HeldOut; s != nil {
		rep.Claims = append(rep.Claims, study.Claim{
			Paper: fmt.Sprintf("%s: test loss %.3f, top-5 %.2f %%, top-20 %.2f %% (Table 1)", strings.Split(all[0].label, ",")[0], all[0].test, all[0].top5, all[0].top20),
			Here:  fmt.Sprintf("%.3f, %.2f %%, %.2f %%", s.Loss, 100*s.Top5, 100*s.Top20), Outcome: study.Irreproducible, Why: why,
		})
	}
	restFindings(rep, all, on)
}

// unfinished says which trainings ended before their time; "": none.
func unfinished(all []learned, on study.Target) string {
	var early []string
	size := map[bool]study.Size{false: study.Full, true: study.Quick}[on.Reduced]
	for _, l := range all {
		if last := l.last(); last.Stop == "" && last.Wall < l.training(size, on).Time {
			early = append(early, fmt.Sprintf("%s after %.0f s", l.label, last.Wall))
		}
	}
	if early == nil {
		return ""
	}
	return fmt.Sprintf("The run ended before these trainings had their %.0f s: %s.", all[0].training(size, on).Time, strings.Join(early, ", "))
}

// restFindings adds what training takes beside forward and backward alone.
func restFindings(rep *study.Report, all []learned, on study.Target) {
	var rest []string
	var turns []study.Overhead
	for _, l := range all {
		turns = append(turns, l.overhead)
		if more := l.rest(); more < 0 {
			rest = append(rest, "less than the noise for "+l.label)
		} else if !math.IsNaN(more) {
			rest = append(rest, fmt.Sprintf("%.1f %% for %s", more, l.label))
		}
	}
	if rest != nil {
		rep.Findings = append(rep.Findings, "Feeding, the optimiser and reading the loss add to forward and backward alone: "+strings.Join(rest, ", ")+".")
	}
	if says := on.OverheadSays("All networks", turns); says != "" {
		rep.Findings = append(rep.Findings, says)
	}
}
