package table

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"rnnbench/internal/safe"
	"rnnbench/plots/quantity"
	"rnnbench/record/compare"
)

// A Brief is a comparison of two programs as a comment on a pull request: what changed, at most briefRows of
// it, and how small a change the machine shows.
type Brief struct {
	*compare.Comparison
	Options compare.Options
	Of      string // which programs are compared
	Notes   []string
}

// briefRows is the largest number of rows of a Brief. A comment may have 65,536 characters, and a row takes
// less than 500.
const briefRows = 20

// worthTelling are the verdicts that a Brief lists, the most important first.
func worthTelling() []compare.Verdict {
	return []compare.Verdict{compare.Slower, compare.Broken, compare.Faster, compare.Fixed, compare.Gone, compare.New}
}

// Write writes the comment in Markdown.
func (b Brief) Write(w io.Writer) error {
	list := []compare.Comparison{*b.Comparison}
	t := Changes(list, b.Options, []compare.Verdict{})
	for i := range t.Columns {
		if k := t.Columns[i].Key; k == "p_holm" || k == "times_ratio" {
			t.Columns[i].Name = ""
		}
	}
	left := 0
	for _, v := range worthTelling() {
		for _, row := range Changes(list, b.Options, []compare.Verdict{v}).Rows {
			if len(t.Rows) < briefRows {
				t.Rows = append(t.Rows, row)
			} else {
				left++
			}
		}
	}
	t.Title = ""
	t.Notes = b.Notes
	if b.Shifted {
		t.Notes = append(moved(b.Comparison)[:1], t.Notes...)
	}
	if left > 0 {
		t.Notes = append([]string{fmt.Sprintf("%s more changed, which are not listed here.", quantity.Plural(left, "point"))}, t.Notes...)
	}
	_, err := fmt.Fprintf(w, "### rnnbench: %s\n\n%s\n\n", verdictCounts(b.Comparison), safe.Markdown(b.Of))
	if err != nil {
		return err
	}
	if len(t.Rows) > 0 {
		return t.Write(w, "markdown", Options{})
	}
	for _, n := range t.Notes {
		if _, err := fmt.Fprintf(w, "- %s\n", safe.Markdown(n)); err != nil {
			return err
		}
	}
	return nil
}

// verdictCounts says how many points have each verdict.
func verdictCounts(c *compare.Comparison) string {
	var counts []string
	for _, v := range compare.Verdicts() {
		if n := c.Count(v); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, v))
		}
	}
	if c.Unknown > 0 {
		counts = append(counts, fmt.Sprintf("%d without a result on either side", c.Unknown))
	}
	return strings.Join(counts, ", ")
}

// Sees says how small a change runs in turns showed, and how long a change of the share wanted would take.
// took is the time of those runs of each program.
func Sees(c *compare.Comparison, o compare.Options, runs int, took time.Duration, wanted float64) string {
	s := c.SightOf(o)
	if math.IsNaN(s.Point) {
		return "These runs do not tell how small a change this machine shows."
	}
	noisy := max(s.Point, s.Common) > wanted
	text := fmt.Sprintf("n %s of each program, which took %s, this machine shows changes of %s and more", quantity.Plural(runs, "run"), quantity.Duration(took.Seconds()), above(s.Point))
	if s.Common > 1.25*s.Point {
		text += fmt.Sprintf(" at single points, and of %s and more at all points alike", above(s.Common))
	}
	if !noisy {
		return "I" + text + "."
	}
	text, asked := "Noisy: i"+text, strings.Replace(percent(100*wanted), ".0 ", " ", 1)
	n := c.RunsToSee(wanted, o)
	if n == 0 {
		return text + fmt.Sprintf("; how long %s would take is unknown.", asked)
	}
	return text + fmt.Sprintf("; %s would take about %s.", asked, quantity.Duration(float64(n)*took.Seconds()/float64(runs)))
}

// above is a share as a percentage, rounded up; from a tenth on to a whole number, from two on as a factor.
func above(share float64) string {
	switch {
	case share < 0.1:
		return percent(math.Ceil(share*1000) / 10)
	case share < 2:
		return percent(math.Ceil(share * 100))
	}
	return quantity.Factor(1 + share)
}
