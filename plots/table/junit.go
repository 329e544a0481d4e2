package table

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"

	"rnnbench/plots/quantity"
	"rnnbench/record/compare"
)

// The elements of JUnit's format that continuous integration reads.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Seconds string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Skipped *junitMessage `xml:"skipped"`
	}
	junitMessage struct {
		Text string `xml:"message,attr"`
	}
)

// JUnit writes comparisons as test results: a suite a comparison, a test a technique at a point. Verdicts
// among bad are failures; without any, SLOWER and BROKEN are. Ambiguous points are skipped tests.
func JUnit(w io.Writer, list []compare.Comparison, bad []compare.Verdict) error {
	if len(bad) == 0 {
		bad = []compare.Verdict{compare.Slower, compare.Broken}
	}
	axes := slices.DeleteFunc(quantity.Axes(), func(a quantity.Axis) bool { return a.Name == "impl" })
	var all junitSuites
	for i := range list {
		c := &list[i]
		s := junitSuite{Name: fmt.Sprintf("%s against %s", c.New, c.Base), Tests: len(c.Changes)}
		for _, ch := range inOrder(c, axes) {
			one := junitCaseOf(ch)
			switch message := junitText(ch); {
			case slices.Contains(bad, ch.Verdict):
				one.Failure = &junitMessage{message}
				s.Failures++
			case ch.Verdict == compare.Ambiguous:
				one.Skipped = &junitMessage{message}
				s.Skipped++
			}
			s.Cases = append(s.Cases, one)
		}
		all.Suites = append(all.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// junitCaseOf names a change. Its time is that of a run now.
func junitCaseOf(ch *compare.Change) junitCase {
	r := ch.Record()
	one := junitCase{Class: r.Device, Name: fmt.Sprintf("%v %s", r.Point, quantity.Label(r))}
	if ch.New != nil && ch.New.Seconds() > 0 {
		one.Seconds = fmt.Sprintf("%.9f", ch.New.Seconds())
	}
	return one
}

// junitText says what became of a point.
func junitText(ch *compare.Change) string {
	s := string(ch.Verdict)
	if ch.Ratio.Value > 0 {
		s += " " + change(ch.Ratio.Value)
		if v := span(ch.Ratio); v != "" {
			s += " (" + v + ")"
		}
	}
	if ch.Why != "" {
		s += ": " + ch.Why
	}
	return s
}
