package study

import (
	"cmp"
	"slices"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/plots"
	"rnnbench/record"
)

// An Outcome says how a measurement compares with what a paper found.
type Outcome string

// The outcomes.
const (
	Agrees         Outcome = "agrees"
	Differs        Outcome = "differs"
	Reduced        Outcome = "reduced size"         // smaller than the paper's, so neither agrees nor differs
	Irreproducible Outcome = "cannot be reproduced" // data or machines cannot be had
	Yardstick      Outcome = "yardstick"            // no paper makes a claim
	Unmeasured     Outcome = "not measured"         // these records do not have it
	CannotTell     Outcome = "cannot tell"          // the measurement's interval covers the threshold

	// Nothing was measured: arithmetic or a model gives the paper's value, or another one.
	ComputedAgrees  Outcome = "computed: agrees"
	ComputedDiffers Outcome = "computed: differs"
	ComputedOpen    Outcome = "computed: cannot tell" // it rests on an assumption
)

// differs reports whether something, measured or computed, is not as the paper found.
func (o Outcome) differs() bool { return o == Differs || o == ComputedDiffers }

// A Claim is what a paper found, with what was measured of it.
type Claim struct {
	Paper   string
	Here    string
	Outcome Outcome
	Why     string // why it differs or cannot be reproduced; the record supports it
}

// UnknownCause is the reason of a difference that no record explains.
const UnknownCause = "the cause is not known"

// Verdict is the outcome with its reason, as a sentence without a full stop.
func (c Claim) Verdict() string {
	switch {
	case c.Why == "":
		return string(c.Outcome)
	case c.Outcome.differs() && c.Why == UnknownCause:
		return string(c.Outcome) + "; " + c.Why
	case c.Outcome.differs():
		return string(c.Outcome) + " because " + c.Why
	}
	return string(c.Outcome) + ": " + c.Why
}

// Claim adds a paper's claim and what was found here, for a finding without error, such as a count.
// why is the reason if they differ. On reduced sizes they neither agree nor differ.
func (r *Report) Claim(on Target, paper, here string, agrees bool, why string) {
	Settle(r, on, paper, here, estimate.AnswerOf(agrees), why, "")
}

// ClaimOf adds a paper's claim with a measured value, which agrees if it is within b. here says what
// was measured and spells e with its interval.
func ClaimOf(r *Report, on Target, paper, here string, e estimate.Estimate, b estimate.Band, why string) {
	Settle(r, on, paper, here, b.Holds(e), why, b.Openness(e))
}

// ClaimAt adds a claim of what holds at enough points, as a says. here spells v.
func ClaimAt(r *Report, on Target, paper, here string, v estimate.Votes, a estimate.Answer, why string) {
	Settle(r, on, paper, here, a, why, v.Openness())
}

// Settle adds a claim with the answer to whether it holds, and the reasons if it does not and if that
// is open.
func Settle(r *Report, on Target, paper, here string, a estimate.Answer, why, openness string) {
	c := Claim{Paper: paper, Here: here, Outcome: Agrees}
	switch {
	case on.Reduced:
		c.Outcome = Reduced
	case a == estimate.Open:
		c.Outcome, c.Why = CannotTell, openness
	case a == estimate.No:
		c.Outcome, c.Why = Differs, cmp.Or(why, UnknownCause)
	}
	r.Claims = append(r.Claims, c)
}

// Computed adds a claim that arithmetic or a model answers, at the paper's own sizes.
func Computed(r *Report, paper, here string, agrees bool, why string) {
	c := Claim{Paper: paper, Here: here, Outcome: ComputedAgrees}
	if !agrees {
		c.Outcome, c.Why = ComputedDiffers, cmp.Or(why, UnknownCause)
	}
	r.Claims = append(r.Claims, c)
}

// Compare adds a claim, and a finding that ends with whether it agrees, with the same cause.
func Compare(r *Report, on Target, finding, paper, here string, agrees bool, why string) {
	r.Findings = append(r.Findings, finding+on.Agree(estimate.AnswerOf(agrees), why, ""))
	r.Claim(on, paper, here, agrees, why)
}

// CompareOf is compare for a measured value, which agrees if it is within b.
func CompareOf(r *Report, on Target, finding, paper, here string, e estimate.Estimate, b estimate.Band, why string) {
	r.Findings = append(r.Findings, finding+on.Agree(b.Holds(e), why, b.Openness(e)))
	ClaimOf(r, on, paper, here, e, b, why)
}

// NotMeasured adds a claim that the records cannot answer, with what they lack.
func NotMeasured(r *Report, paper, lacks string) {
	r.Claims = append(r.Claims, Claim{Paper: paper, Here: "these records lack " + lacks, Outcome: Unmeasured})
}

// Yardstick adds a measurement that no paper's claim belongs to.
func (r *Report) Yardstick(here string) {
	r.Claims = append(r.Claims, Claim{Here: here, Outcome: Yardstick})
}

// Agree returns a sentence that says whether a measurement agrees with the paper, and if not, why;
// cause "": unknown. openness is why that is open. On reduced sizes it says that neither can be told.
func (t Target) Agree(a estimate.Answer, cause, openness string) string {
	switch {
	case t.Reduced:
		return " The sizes here are smaller than the paper's, so this neither confirms nor contradicts it."
	case a == estimate.Yes:
		return " They agree."
	case a == estimate.Open:
		return " Whether they agree cannot be told: " + openness + "."
	case cause == "":
		return " They disagree; " + UnknownCause + "."
	}
	return " They disagree because " + cause + "."
}

// reduced reports whether all recs are of the quick size, and that is smaller than the paper's.
// Points that are in no plan count as those of an earlier quick plan.
func (e Experiment) reduced(recs []record.Record, on Target) bool {
	of := func(size Size) map[record.Point]bool {
		set := map[record.Point]bool{}
		for _, part := range e.parts(size, on) {
			for _, p := range part.Points {
				set[p] = true
			}
		}
		return set
	}
	full, quick := of(Full), of(Quick)
	measured := pick.Points(recs)
	all := func(set map[record.Point]bool, in bool) bool {
		return !slices.ContainsFunc(measured, func(p record.Point) bool { return set[p] != in })
	}
	if len(measured) == 0 || len(full) == 0 {
		return false
	}
	same := len(full) == len(quick)
	for p := range full {
		same = same && quick[p]
	}
	return !same && (all(quick, true) || all(full, false))
}

// Heading is the title of a report on e.
func (e Experiment) Heading(r *Report) string {
	if r.Reduced {
		return e.Title + ReducedMark
	}
	return e.Title
}

// ReducedMark ends the title of every table and figure of reduced size.
const ReducedMark = " (reduced size)"

// MarkReduced adds reducedMark to the titles of r's tables and figures, from these indices on.
func MarkReduced(r *Report, tables, figures int) {
	for _, t := range r.Tables[tables:] {
		if t.Title != "" {
			t.Title += ReducedMark
		}
	}
	for _, f := range r.Figures[figures:] {
		switch f := f.Figure.(type) {
		case *plots.Chart:
			f.Title += ReducedMark
		case *plots.Bars:
			f.Title += ReducedMark
		case *plots.Grid:
			f.Title += ReducedMark
		}
	}
}
