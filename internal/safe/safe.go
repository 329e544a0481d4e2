// Package safe cleans text from files for terminals, spreadsheets and pages. Such text
// may move the cursor, change the writing direction or look like a formula.
package safe

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hidden reports whether c is invisible and changes how text is shown: a control character, also
// a line end, or a format character, such as a mark of the writing direction.
func Hidden(c rune) bool {
	return unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == '\u2028' || c == '\u2029'
}

// Text escapes hidden characters and invalid bytes of s as Go does, except line ends and tabs.
func Text(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return Hidden(c) && c != '\n' && c != '\t' }) {
		return s
	}
	var b strings.Builder
	for i, c := range s {
		switch {
		case c == '\n' || c == '\t':
			b.WriteRune(c)
		case c == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case Hidden(c):
			quoted := strconv.QuoteRuneToASCII(c)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// Cell returns s as a cell of a CSV file. It puts an apostrophe before text that begins with
// = + - @ or a tab, which a spreadsheet would run as a formula; numbers stay as they are.
func Cell(s string) string {
	s = Text(s)
	if s == "" || !strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}

// Markdown returns s escaped for a Markdown page, inside and outside tables.
func Markdown(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", `\|`).Replace(s)
}
