package danieli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

func reportTrain(recs []record.Record, on study.Target) (*study.Report, error) {
	all := courses(recs)
	if len(all) == 0 {
		return nil, errors.New("experiments: no network has been trained")
	}
	rep := &study.Report{Tables: []*table.Table{tableOfCourses(all)}}
	say := func(s string) {
		if s != "" {
			rep.Findings = append(rep.Findings, s)
		}
	}
	by := find(all, newton)
	if by != nil {
		if kernel := find(all, serial); kernel != nil {
			say(besideKernel(rep, *by, *kernel))
			say(sameLosses(*by, *kernel))
		}
		say(iterated(*by))
		say(gaveUp(*by))
	}
	say(equalLoss(all))
	say(weight(recs[0].Point))
	drawLosses(rep, all, on)
	return rep, nil
}

// name is a course's in sentences.
func (c course) name() string { return fmt.Sprintf("%s by %s", cellName(c.cell), c.label) }

// minibatches spells a number of them.
func minibatches(n int) string {
	if n == 1 {
		return "1 minibatch"
	}
	return fmt.Sprintf("%d minibatches", n)
}

// cellName is a cell without the hash of its equations.
func cellName(cell string) string {
	name, _, _ := strings.Cut(cell, "@")
	return name
}

// tableOfCourses has a row for each network.
func tableOfCourses(all []course) *table.Table {
	t := &table.Table{Title: "The adding problem: what each network has learnt", Columns: []table.Column{
		{Name: "Cell", Key: "cell"}, {Name: "By", Key: "technique"}, show.Column("Trained", "minibatches"), show.Column("Seconds", "wall_s"), show.Column("ms each", "minibatch_ms"),
		show.Column("Loss", "loss"), {Name: "Iter.", Key: "iterations"}}}
	failing := slices.ContainsFunc(all, func(c course) bool { return c.ended != nil })
	if failing {
		t.Columns = append(t.Columns, table.Column{Name: "Status", Key: "status"})
	}
	for _, c := range all {
		row := []table.Cell{table.Text(cellName(c.cell)), table.Text(c.label), show.Missing(), show.Missing(), show.Missing(), show.Missing(), show.Missing()}
		if last := c.last(); last != nil {
			row[2], row[3], row[5] = table.Int(last.Iterations), show.Number(last.Wall, "%.3g"), show.Number(last.MeanLoss, "%.4g")
		}
		if s := c.each(); s > 0 {
			row[4] = show.Number(1000*s, "%.3g")
		}
		if v := c.convergence(); v != nil && len(v.Taken) > 0 {
			row[6] = table.Text(spelled(v.Taken))
		}
		switch {
		case c.ended != nil:
			row = append(row, table.Text("not converged"))
		case failing:
			row = append(row, table.Text(""))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = []string{"Trained: minibatches. Seconds: of them all. ms each: median over the records. Loss: mean over the minibatches of the last record, in nats. Iter.: iterations of Newton's method for each minibatch."}
	return t
}

// spelled is how many iterations were taken, such as "2, then 4".
func spelled(taken []record.Taken) string {
	var words []string
	for _, x := range taken {
		words = append(words, fmt.Sprint(x.Iterations))
	}
	return strings.Join(words, ", then ")
}

// together returns the records of a and b after as many minibatches, in pairs.
func together(a, b course) (pairs [][2]*record.Training) {
	at := map[int]*record.Training{}
	for _, r := range b.records {
		at[r.Training.Iterations] = r.Training
	}
	for _, r := range a.records {
		if x := at[r.Training.Iterations]; x != nil {
			pairs = append(pairs, [2]*record.Training{r.Training, x})
		}
	}
	return pairs
}

// besideKernel compares the times of both for as many minibatches, and adds the ratio to rep.
func besideKernel(rep *study.Report, by, kernel course) string {
	pairs := together(by, kernel)
	if len(pairs) == 0 {
		return ""
	}
	last := pairs[len(pairs)-1]
	if last[0].Wall <= 0 || last[1].Wall <= 0 {
		return ""
	}
	ratio := last[1].Wall / last[0].Wall
	rep.Yardstick(fmt.Sprintf("over %s, Newton's method is %.2f times as fast as the serial kernel", minibatches(last[0].Iterations), ratio))
	return fmt.Sprintf("For %s, Newton's method takes %s and the serial kernel %s: Newton's method is %.2f times as fast, checks of its states included. They were trained one after the other, so other programs may have slowed one of them.",
		minibatches(last[0].Iterations), quantity.SI(last[0].Wall, "s"), quantity.SI(last[1].Wall, "s"), ratio)
}

// sameLosses says how far the losses of both are apart.
func sameLosses(by, kernel course) string {
	pairs := together(by, kernel)
	if len(pairs) == 0 {
		return ""
	}
	apart, at := 0.0, 0
	for _, p := range pairs {
		if d := math.Abs(p[0].MeanLoss/p[1].MeanLoss - 1); d > apart {
			apart, at = d, p[0].Iterations
		}
	}
	if apart == 0 {
		return fmt.Sprintf("Both have the same mean losses in all %s.", quantity.Plural(len(pairs), "record"))
	}
	return fmt.Sprintf("Their mean losses differ by at most %.1g times the loss, after minibatch %d, over %s. They start from the same weights and see the same minibatches.", apart, at, quantity.Plural(len(pairs), "record"))
}

// iterated says how many iterations of Newton's method minibatches took, and when they became more.
func iterated(by course) string {
	v := by.convergence()
	if v == nil || len(v.Taken) == 0 {
		return ""
	}
	first := v.Taken[0]
	s := fmt.Sprintf("Newton's method begins with %s for each minibatch", quantity.Plural(first.Iterations, "iteration"))
	for _, x := range v.Taken[1:] {
		s += fmt.Sprintf(", and takes %d after minibatch %d", x.Iterations, x.After)
	}
	if len(v.Taken) == 1 {
		s += ", and they suffice to the last record"
	}
	return fmt.Sprintf("%s. At the last check the states changed by %.2g of the largest.", s, v.Residual)
}

// gaveUp says where Newton's method did not converge, and why; "": it did.
func gaveUp(by course) string {
	if by.ended == nil {
		return ""
	}
	s := fmt.Sprintf("Training by Newton's method ends after %s, since it does not converge", minibatches(by.ended.Training.Iterations))
	if why := by.ended.Reason; why != nil {
		s += ": " + *why
	}
	return s + "."
}

// equalLoss says how long each network takes to the lowest mean loss that all reach.
func equalLoss(all []course) string {
	level, learnt := math.Inf(-1), 0
	for _, c := range all {
		if len(c.records) > 0 {
			level, learnt = max(level, c.least()), learnt+1
		}
	}
	if learnt < 2 {
		return ""
	}
	var words []string
	for _, c := range all {
		if r := c.reaches(level); r != nil {
			words = append(words, fmt.Sprintf("%s after %s (%s)", c.name(), quantity.SI(r.Wall, "s"), minibatches(r.Iterations)))
		}
	}
	return fmt.Sprintf("The lowest mean loss that all reach is %.4g nats: %s. Each time is that of the first record at or below it.", level, strings.Join(words, "; "))
}

// weight says how little of the loss is of the sum.
func weight(p record.Point) string {
	return fmt.Sprintf("Only the last of %d steps asks for the sum, so it has 1/%d of the loss. The other steps ask for one class, whatever the input. The losses do not tell how much of the sum a network has learnt.", p.Steps, p.Steps)
}

// drawLosses draws the mean loss between records over the seconds of training.
func drawLosses(rep *study.Report, all []course, on study.Target) {
	var points []record.Record
	for _, c := range all {
		drawn := 0.0
		for i, r := range c.records {
			if r.Training.Wall < 1.05*drawn && i+1 < len(c.records) {
				continue // too near to be told apart on a logarithmic axis
			}
			drawn = r.Training.Wall
			one, t := *r, *r.Training
			t.Loss, one.Training, one.Impl.Label = t.MeanLoss, &t, c.name()
			points = append(points, one)
		}
	}
	fig, err := plots.Lines(points, plots.Spec{X: "wall", Y: "loss", Scale: "log", Machine: on.Name, Title: "The adding problem: training loss over time"})
	if fig != nil {
		number := func(v float64) string { return fmt.Sprintf("%.3g", v) }
		fig.X.Scale, fig.Y.Zero, fig.Y.Title = plots.Log, false, "Mean training loss (nats)"
		fig.X.Format, fig.Y.Format = number, number
	}
	rep.Add("newton-train", fig, err)
}
