package study

import (
	"fmt"

	"rnnbench/plots/quantity"
	"rnnbench/tuner/agenda"
)

// Agenda is what the experiment measures.
func (e Experiment) Agenda(size Size, on Target) agenda.Agenda {
	var q agenda.Agenda
	if e.Parts != nil {
		for _, x := range e.Parts(size, on) {
			q.Parts = append(q.Parts, agenda.Part{Points: x.Points, Specs: x.Specs})
		}
	}
	if e.Trainings != nil {
		for _, x := range e.Trainings(size, on) {
			q.Parts = append(q.Parts, agenda.Part{Points: x.Points, Specs: x.Specs, Training: &x.Plan})
		}
	}
	q.Summary = fmt.Sprintf("%s: %s", e.ID, quantity.Plural(q.Records(), "record"))
	return q
}
