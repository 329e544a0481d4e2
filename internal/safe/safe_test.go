package safe

import "testing"

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"plain µs ± 3 %":      "plain µs ± 3 %",
		"two\nlines\tand tab": "two\nlines\tand tab",
		"\x1b[2Jgone":         `\x1b[2Jgone`,
		"a\rb\a\u009b31m":     `a\rb\a\u009b31m`,
		"abc\u202edef\u2066":  `abc\u202edef\u2066`,
		"bad \xff byte":       `bad \xff byte`,
		"a \ufffd mark":       "a \ufffd mark",
	} {
		if got := Text(s); got != want {
			t.Errorf("%q becomes %q, want %q", s, got, want)
		}
	}
}

func TestCell(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "naive": "naive", "-1.5": "-1.5", "+3e4": "+3e4", "1=2": "1=2",
		"=HYPERLINK(1)": "'=HYPERLINK(1)", "@SUM(1)": "'@SUM(1)", "+1+cmd": "'+1+cmd", "-2+3": "'-2+3", "\t=1": "'\t=1",
	} {
		if got := Cell(s); got != want {
			t.Errorf("%q becomes %q, want %q", s, got, want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	if got := Markdown(`<img src=x onerror="y"> a|b & c`); got != `&lt;img src=x onerror="y"&gt; a\|b &amp; c` {
		t.Error(got)
	}
}
