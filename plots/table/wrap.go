package table

import (
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// columns returns how many columns of a terminal s takes.
func columns(s string) int { return twwidth.Width(s) }

// joints are the characters after which a long word may be broken.
const joints = ":,;|+"

// wrap breaks s into lines of at most width columns: at a space, else after one of joints, else
// anywhere.
func wrap(s string, width int) []string {
	width = max(width, 1)
	var lines []string
	for columns(s) > width {
		space, joint, fit, used := -1, -1, 0, 0
		for i, c := range s {
			if c == ' ' && used <= width {
				space = i
			}
			w := columns(string(c))
			if used += w; used > width && i > 0 {
				break
			}
			if fit = i + len(string(c)); strings.ContainsRune(joints, c) {
				joint = fit
			}
		}
		cut := fit
		switch {
		case space > 0:
			cut = space
		case joint > 0:
			cut = joint
		}
		lines = append(lines, strings.TrimRight(s[:cut], " "))
		if s = strings.TrimLeft(s[cut:], " "); s == "" {
			return lines
		}
	}
	return append(lines, s)
}

// longest returns the width of the longest part of s that wrap would not break, given room.
func longest(s string) int {
	most := 0
	for word := range strings.FieldsSeq(s) {
		for part := range strings.FieldsFuncSeq(word, func(c rune) bool { return strings.ContainsRune(joints, c) }) {
			most = max(most, columns(part)+1) // with its joint
		}
	}
	return min(most, columns(s))
}

// Paragraph wraps s to a width in columns and indents continuation lines; width 0: one line.
func Paragraph(s string, width, indent int) string {
	if width <= 0 || columns(s) <= width {
		return s
	}
	lines := wrap(s, width)
	if len(lines) > 1 { // continuation lines are narrower
		rest := strings.TrimLeft(s[len(lines[0]):], " ")
		lines = append(lines[:1], wrap(rest, width-indent)...)
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", indent))
}

// Sentence is Paragraph, but never breaks a path. A terminal wraps a path that is too wide, and
// still copies it whole.
func Sentence(s string, width, indent int) string {
	at := 0
	for _, word := range strings.SplitAfter(s, " ") {
		path := strings.TrimRight(word, " ")
		if width <= 0 || !strings.Contains(path, "/") || columns(path) <= width-indent {
			at += len(word)
			continue
		}
		out := path
		if head := strings.TrimRight(s[:at], " "); head != "" {
			out = Paragraph(head, width, indent) + " " + path
		}
		if tail := strings.TrimLeft(s[at+len(path):], " "); tail != "" {
			margin := strings.Repeat(" ", indent)
			out += "\n" + margin + strings.ReplaceAll(Sentence(tail, width-indent, 0), "\n", "\n"+margin)
		}
		return out
	}
	return Paragraph(s, width, indent)
}

// parts wraps a title between its parts, and within a part only if it is longer than a line.
func parts(s string, width int, o Options) string {
	if width <= 0 || columns(s) <= width {
		return s
	}
	const indent = 2
	between := " " + cellText("·", o) + " "
	var lines []string
	for part := range strings.SplitSeq(s, between) {
		n := len(lines) - 1
		if n >= 0 && columns(lines[n]+between+part+between) <= width-indent {
			lines[n] += between + part
			continue
		}
		if n >= 0 {
			lines[n] += strings.TrimRight(between, " ")
		}
		lines = append(lines, wrap(part, width-indent)...)
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", indent))
}
