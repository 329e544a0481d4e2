package table

import (
	"io"
	"strings"
)

// spellings are the characters that this program prints, and how ASCII spells them.
var spellings = strings.NewReplacer("µ", "u", "±", "+/-", "×", "x", "·", "-", "∘", "*", "–", "-", "—", "-", "−", "-", "…", "...",
	"≤", "<=", "≥", ">=", "≈", "~", "→", "->", "←", "<-", "÷", "/", "√", "sqrt ", "²", "^2", "³", "^3", "⁻", "^-", "σ", "sigmoid", "Σ", "sum ", "ε", "eps", "°", " deg")

// ASCII spells s in ASCII. A character that has no spelling becomes a question mark.
func ASCII(s string) string {
	return strings.Map(func(c rune) rune {
		if c > 126 {
			return '?'
		}
		return c
	}, spellings.Replace(s))
}

// Letters returns a writer that spells what it writes to w in ASCII. Each write must hold whole characters.
func Letters(w io.Writer) io.Writer { return letters{w} }

type letters struct{ to io.Writer }

func (p letters) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.to, ASCII(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
