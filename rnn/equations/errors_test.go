package equations

import (
	"strings"
	"testing"
)

// TestMistakes: each mistake gets one sentence with its place that says what to do.
func TestMistakes(t *testing.T) {
	const n = "gate n = tanh(W x + R h + b)\n"
	for _, c := range []struct{ text, want string }{
		{"", "u.cell:1:1: there is no gate: write at least one equation with W x"},
		{"# nothing\n", "there is no gate"},
		{"gate n = tanh(W x + b)\n", "there is no state: write the output's next value, as in h' = n"},
		{"h' = q\n", `u.cell:1:6: q is not defined`},
		{"h' = n\n" + n, "u.cell:1:6: n is defined only in line 2: an equation may use those above it"},
		{"u = v * v\nv = u\n" + n + "h' = n * u", "u.cell:1:5: v is defined only in line 2: an equation may use those above it, so move that up, or break the cycle if each needs the other"},
		{"h' = h'", "h' is read before it is computed"},
		{"state h, c\n" + n + "h' = n", "u.cell:1:10: state c has no next value: write c' = …"},
		{"state h, h\n", "state h is declared twice"},
		{"state h >\n", "u.cell:1:10: expected \"0\" after >, found the end of the line"},
		{"state h c\n", `expected the end of the line, found "c"`},
		{n + n + "h' = n", "u.cell:2:6: n is defined twice: first in line 1"},
		{n + "h' = n\nh' = n", "h' is defined twice: first in line 2"},
		{n + "h = n", "R multiplies a state, and h is none"},
		{n + "m = n\nh' = h", "u.cell:2:1: m is not used"},
		{n + "h' = h", "u.cell:1:6: n is not used"},
		{n + "y' = n", "no state is called h, so it is unclear which one is the output: declare the states, the output first, as in \"state y\""},
		{"weight u\n" + n + "h' = n", "weight u is not used"},
		{"weight n\n" + n + "h' = n", "n is a weight of line 1"},
		{"gate h = W x + b\nh' = h", "h is a state, whose next value is h'"},
		{"gate n' = W x + b\nh' = n", "a gate has no next value"},
		{"gate tanh = W x + b\nh' = tanh", `"tanh" has a meaning of its own`},
		{"gate n = tanh(R h + b)\nh' = n", "gate n has no product with the input: write W x into it"},
		{"n = W x + b\nh' = n", "only gates have products: write gate before the name"},
		{"gate n = W h\nh' = n", `expected "x" after W, found "h"`},
		{"gate n = W x + R n\nh' = n", "R multiplies a state, and n is none: a state has an equation for its next value, n' = …"},
		{"gate n = W x + R h'\nh' = n", "R multiplies a state before the step: write R h"},
		{"gate n = W x + R h + b\ngate m = W x + R c + b\nc' = n\nh' = m", "R multiplies h in another equation"},
		{"gate n = W x + R (n * h)\nh' = n", "n is not defined"},
		{"gate n = W x + R (h * R h)\nh' = n", "R stands for one matrix in an equation"},
		{"gate n = W x + R h + R (h * h)\nh' = n", "R stands for one matrix in an equation"},
		{"gate n = W x + R (h * h) + R h\nh' = n", "R stands for one matrix in an equation"},
		{"gate n = W x + R (h)\nh' = n", "write R h without parentheses"},
		{"gate n = W x + R (h * h, h)\nh' = n", `expected ")" after the value that R multiplies`},
		{"gate n = W x + R (h * h)\ngate m = W x + R (h + h)\nh' = n * m", "u.cell:2:18: R multiplies another value in line 1"},
		{"state h, m fixed\nm' = m\ngate n = W x + R (m' * h)\nh' = n", "the value that R multiplies depends on the fixed state m"},
		{"gate n = x + b\nh' = n", "the input may have another size than the layer"},
		{"gate n = W x + tanh(b)\nh' = n", "b is the bias of a product"},
		{"gate n = W x - b\nh' = n", "b cannot be subtracted"},
		{"gate n = W x + -b\nh' = n", "b cannot be subtracted"},
		{"gate n = W x * b\nh' = n", "b cannot be multiplied"},
		{"gate n = (W x + b\nh' = n", "u.cell:1:10: this parenthesis is not closed"},
		{"gate n = (W x, b)\nh' = n", `expected ")" after an expression in parentheses, found ","`},
		{"gate n = W x + b)\nh' = n", `expected the end of the line, found ")"`},
		{"gate n = max(W x + b)\nh' = n", "max takes 2 operands"},
		{"gate n = tanh W x\nh' = n", `expected "(" after tanh, found "W"`},
		{"gate n = W x +\nh' = n", "u.cell:1:15: expected a value, found the end of the line"},
		{"gate n = W x + b\nh' = 1 / n", "u.cell:2:10: this divisor may be 0"},
		{"gate n = W x + b\nh' = n / 0", "this divisor may be 0"},
		{"state h, c > 0\ngate n = W x + b\nc' = n\nh' = n", "c is declared > 0, but c' may be 0 or below"},
		{"state h, m fixed\ngate n = tanh(W x + R h + b)\nm' = n\nh' = 1 - m'", "nothing but fixed states depends on gate n"},
		{"state h, m fixed\ngate n = tanh(W x + R h + b)\nm' = n\nh' = n * m'", "m is declared fixed, but the output depends on it"},
		{"state h fixed\ngate n = tanh(W x + R h + b)\nh' = n", "the output cannot be fixed"},
		{"window 0\n", "expected the number of input steps that a gate reads, 1 to 8"},
		{"gate n = W x + 1e99\nh' = n", "1e99 is not a number that single precision holds"},
		{"gate n = W x ^ 2\nh' = n", `u.cell:1:14: "^" has no meaning here`},
		{"gate n = W x ∘ h\nh' = n", `"∘" has no meaning here`},
		{"gate n\x00 = W x", "the file is not text"},
		{"\xff\xfe", "the file is not text"},
		{"gate n = W x + " + strings.Repeat("(", 60) + "h" + strings.Repeat(")", 60) + "\nh' = n", "more than 50 parentheses stand within each other"},
		{"gate n = W x + " + strings.Repeat("-", 60) + "h\nh' = n", "more than 50 signs stand before each other"},
		{"gate " + strings.Repeat("n", 40) + " = W x\n", "this name has 40 letters"},
		{"gate n = W x" + strings.Repeat(" + h * h", 2000) + "\nh' = n", "the file has more than 4096 words and signs"},
		{"gate n = W x" + strings.Repeat(" + h * h", 200) + "\nh' = n", "the cell is too large: a step takes"},
		{strings.Repeat("#\n", mostBytes), "the file is larger than 16384 bytes"},
		{strings.Repeat("gate a = W x\n", 2), "a is defined twice"},
	} {
		_, err := Parse("u.cell", "u", c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q gives %v, want %s", c.text, err, c.want)
		}
	}
}

// TestSpelling: comments, spaces, line ends and a byte-order mark change neither a cell nor its name.
func TestSpelling(t *testing.T) {
	const plain = "gate n = tanh(W x + R h + b)\nh' = n\n"
	want, err := Parse("u.cell", "u", plain)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"\ufeff" + plain, strings.ReplaceAll(plain, "\n", "\r\n"), "# u\n\n" + plain + "\n\n", strings.ReplaceAll(plain, " + ", "\t+"),
		"gate n = tanh(W x +\n  R h + b) # over two lines\nh' = n",
	} {
		if got, err := Parse("u.cell", "u", text); err != nil || got.Name != want.Name {
			t.Errorf("%q is %v, %v, want %v", text, got, err, want)
		}
	}
	if got, _ := Parse("u.cell", "u", strings.Replace(plain, "tanh", "sigmoid", 1)); got == nil || got.Name == want.Name {
		t.Errorf("other equations give %v", got)
	}
}

// FuzzParse: no file makes the parser panic, and each cell that it accepts has programs that agree with
// the equations; Parse itself compares them.
func FuzzParse(f *testing.F) {
	for _, text := range examples(f) {
		f.Add(text)
	}
	f.Add("state h, n > 0, m fixed\nweight u\nwindow 2\ngate g = W x + u * h + b\nm' = max(g, m)\nn' = exp(g - m') + n\nh' = abs(min(g, -2 * h)) / n'")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := Parse("u.cell", "u", text)
		if err != nil && strings.Contains(err.Error(), "internal error") {
			t.Error(err)
		}
	})
}
