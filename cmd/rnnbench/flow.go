package main

import (
	"strings"

	"rnnbench/plots/table"
)

// pageWidth is how many columns a text has that goes to no terminal: those of most terminals.
const pageWidth = 80

// widest is how wide sentences are at most, on however wide a terminal.
const widest = 100

// flow breaks the paragraphs of a text anew, so that they fit a width. A line that two spaces
// begin is an item of a list, and lines with more spaces go on with it.
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
			paragraph, indent = line, hang(line)
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

// hang is how far the further lines of an item are indented: as far as the text behind its mark
// or name begins, unless the name is long.
func hang(item string) int {
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

// commandLines breaks commands that are wider than width as a shell lets them go on: by a
// backslash at the end of a line. One with a comment is left as it is.
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

// lastSpace is where to break a command within its first n bytes: before a pipe, else before a
// flag, else at the last space. It lies between words and outside quotes; -1: there is none.
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
