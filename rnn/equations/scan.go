package equations

import (
	"fmt"
	"strings"
)

// An Error is a mistake in a file of equations.
type Error struct {
	File      string
	Line, Col int // from 1; Col counts bytes
	Text      string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Text) }

// A class is a kind of token.
type class uint8

const (
	end     class = iota // of the file
	newline              // outside parentheses
	name
	number
	sign // one of + - * / ( ) , = ' >
)

// A token is a word of a file.
type token struct {
	class
	text      string
	line, col int
}

// String is the token as messages quote it.
func (t token) String() string {
	switch t.class {
	case end:
		return "the end of the file"
	case newline:
		return "the end of the line"
	}
	return fmt.Sprintf("%q", t.text)
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// scan divides a file into tokens. A comment goes from # to the end of the line. A line ends outside
// parentheses alone.
func scan(file, text string) ([]token, *Error) {
	var tokens []token
	line, start := 1, 0
	var open []token // parentheses
	for i := 0; i < len(text); {
		c, from := text[i], i
		t := token{line: line, col: i - start + 1}
		i++
		switch {
		case c == '#':
			for i < len(text) && text[i] != '\n' {
				i++
			}
			continue
		case c == ' ' || c == '\t' || c == '\r':
			continue
		case c == '\n':
			line, start = line+1, i
			if len(open) > 0 || len(tokens) == 0 || tokens[len(tokens)-1].class == newline {
				continue
			}
			t.class = newline
		case letter(c):
			for i < len(text) && (letter(text[i]) || digit(text[i])) {
				i++
			}
			t.class = name
		case digit(c) || c == '.' && i < len(text) && digit(text[i]):
			for i < len(text) && (letter(text[i]) || digit(text[i]) || text[i] == '.' || strings.IndexByte("+-", text[i]) >= 0 && strings.IndexByte("eE", text[i-1]) >= 0) {
				i++
			}
			t.class = number
		case strings.IndexByte("+-*/(),='>", c) >= 0:
			t.class = sign
			switch c {
			case '(':
				open = append(open, t)
			case ')':
				open = open[:max(0, len(open)-1)]
			}
		default:
			return nil, &Error{file, line, t.col, fmt.Sprintf("%s has no meaning here: equations consist of names, numbers and + - * / ( ) , = ' >", quoted(text[from:]))}
		}
		t.text = text[from:i]
		if t.class == name && len(t.text) > mostName {
			return nil, &Error{file, line, t.col, fmt.Sprintf("this name has %d letters: at most %d are allowed", len(t.text), mostName)}
		}
		tokens = append(tokens, t)
		if len(tokens) > mostTokens {
			return nil, &Error{file, line, t.col, fmt.Sprintf("the file has more than %d words and signs: that is more than a cell can have", mostTokens)}
		}
	}
	if len(open) > 0 {
		last := open[len(open)-1]
		return nil, &Error{file, last.line, last.col, "this parenthesis is not closed"}
	}
	return append(tokens, token{class: end, line: line, col: len(text) - start + 1}), nil
}

// quoted is the first character of text as messages quote it.
func quoted(text string) string {
	for _, r := range text {
		return fmt.Sprintf("%q", string(r))
	}
	return ""
}
