package equations

import "fmt"

// A cursor goes through the tokens of a file.
type cursor struct {
	file   string
	tokens []token
	at     int
}

// fail ends parsing with a message about t.
func (p *cursor) fail(t token, format string, args ...any) {
	panic(&Error{p.file, t.line, t.col, fmt.Sprintf(format, args...)})
}

func (p *cursor) peek() token { return p.tokens[p.at] }

// ahead reports whether the next tokens have these texts.
func (p *cursor) ahead(texts ...string) bool {
	for i, text := range texts {
		if t := p.tokens[min(p.at+i, len(p.tokens)-1)]; t.class == end || t.class == newline || t.text != text {
			return false
		}
	}
	return true
}

// take skips the next token if it has that text.
func (p *cursor) take(text string) bool {
	if !p.ahead(text) {
		return false
	}
	p.at++
	return true
}

func (p *cursor) need(text, what string) {
	if !p.take(text) {
		p.fail(p.peek(), "expected %q%s, found %v", text, what, p.peek())
	}
}
