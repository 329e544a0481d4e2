package main

import (
	"strings"

	"rnnbench/plots/table"
)

// pageWidth is the width in columns of text that is not written to a terminal.
const pageWidth = 80

// widest is the most columns of running text, however wide the terminal is.
const widest = 100

// flow wraps the paragraphs of text at width columns. A line indented by two spaces begins an
// item of a list; lines indented further continue it.
func flow(text string, width int) string {
	width = min(width, widest)
	var out []string
	paragraph, indent := "", 0
	end := func() {
		if paragraph != "" {
			out = append(out, table.Paragraph(paragraph, width, indent))
		}
		paragraph = ""
	}
	for line := range strings.SplitSeq(text, "\n") {
		item := strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   ")
		switch {
		case line == "":
			end()
			out = append(out, "")
		case item:
			end()
			paragraph, indent = line, hangingIndent(line)
		case paragraph == "" || indent > 0 && line[0] != ' ':
			end()
			paragraph, indent = line, 0
		default:
			paragraph += " " + strings.TrimSpace(line)
		}
	}
	end()
	return strings.Join(out, "\n")
}

// hangingIndent returns the indent of an item's continuation lines: the column where the text after
// its mark or name begins, or a usual indent if the item has no name or a long one.
func hangingIndent(item string) int {
	const most, usual = 20, 6
	if strings.HasPrefix(item, "  - ") {
		return 4
	}
	name := strings.Index(item[2:], "  ")
	if name < 0 || name > most {
		return usual
	}
	at := 2 + name
	return len(item) - len(strings.TrimLeft(item[at:], " "))
}

// commandLines breaks commands wider than width with a backslash at the end of a line, as shells
// allow. A command with a comment stays as it is.
func commandLines(commands string, width int) string {
	var out []string
	for line := range strings.SplitSeq(commands, "\n") {
		for len(line) > width && !strings.Contains(line, " # ") {
			at := lastSpace(line, width-2)
			if at < 0 {
				break
			}
			out = append(out, line[:at]+` \`)
			line = "      " + line[at+1:]
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// lastSpace returns where to break a command within its first n bytes: before a pipe, else before
// a flag, else at the last space. The space lies between words and outside quotes; -1: none does.
func lastSpace(line string, n int) int {
	last, rank := -1, 0
	quote, words := byte(0), false
	for i := 0; i <= n && i < len(line)-1; i++ {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c != ' ':
			words = true
		case words:
			r := 1 + strings.IndexByte("-|", line[i+1])
			if r >= rank {
				last, rank = i, r
			}
		}
	}
	return last
}
