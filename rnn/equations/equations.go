// Package equations reads a recurrent cell from a text file of equations.
//
// A file says what one unit computes in one step:
//
//	# Minimal gated unit, reset after the product (Zhou et al. 2016)
//	gate f = sigmoid(W x + R h + b)
//	gate n = tanh(W x + f * (R h) + b)
//	h' = (1 - f) * h + f * n
//
// The equations are the truth. The reference interprets them in double precision (interpret.go).
// Devices run a program that is lowered from the same tree by other code (lower.go), and the gradient
// is derived from that program. Check compares all three before a cell is used.
//
// docs/cells.md describes the language with its grammar.
package equations

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"rnnbench/internal/input"
	"rnnbench/rnn/cell"
)

// Bounds of a file. They are far above any cell that was published.
const (
	mostBytes   = 16 << 10
	mostTokens  = 4096
	mostName    = 32 // letters of a name
	mostDepth   = 50 // parentheses within each other
	mostGates   = 8
	mostStates  = 6
	mostWeights = 8
	mostWindow  = 8
	mostVectors = 64  // vectors and temporaries of each program
	mostSteps   = 256 // operations of the forward program
)

// Extension is how the names of files of equations end.
const Extension = ".cell"

// plain is a name of a cell.
var plain = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9][A-Za-z0-9_-]{0,%d}$`, mostName-1))

// IsFile reports whether a value of --cell names a file.
func IsFile(word string) bool {
	return strings.HasSuffix(word, Extension)
}

// Load reads a cell from a file and registers it with package cell. The cell's name is that of the file
// with a hash of its equations, as in mgu@1f3870be: cells of one name and other equations are two cells.
func Load(path string) (*cell.Cell, error) {
	text, err := input.ReadTextFile(path, mostBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file: name a file of equations (docs/cells.md), or a cell", path)
	case err != nil:
		return nil, fmt.Errorf("cannot read the file of a cell: %w", err)
	}
	base := strings.TrimSuffix(filepath.Base(path), Extension)
	if !plain.MatchString(base) {
		return nil, fmt.Errorf("%s: the file's name is the cell's: use at most %d letters, digits, - and _, and then %s", path, mostName, Extension)
	}
	return register(path, base, string(text))
}

// Read registers the cell of a text, as Load does that of the file name.cell.
func Read(name, text string) (*cell.Cell, error) { return register(name+Extension, name, text) }

// Restore registers the cell of a record, by its name and the text of its file.
func Restore(id, text string) (*cell.Cell, error) {
	if c := cell.Lookup(id); c != nil && c.Text == text {
		return c, nil
	}
	base, _, _ := strings.Cut(id, "@")
	c, err := register(base+Extension, base, text)
	if err == nil && c.Name != id {
		return nil, fmt.Errorf("equations: the cell %s has other equations than its name says: they are those of %s", id, c.Name)
	}
	return c, err
}

func register(path, base, text string) (*cell.Cell, error) {
	c, err := Parse(path, base, text)
	if err != nil {
		return nil, err
	}
	return cell.Register(c), nil
}

// Parse reads a cell. path is for messages, base is the cell's name without its hash.
func Parse(path, base, text string) (*cell.Cell, error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	switch {
	case len(text) > mostBytes:
		return nil, fmt.Errorf("%s: the file is larger than %d bytes: it cannot be a cell", path, mostBytes)
	case strings.ContainsRune(text, 0) || !utf8.ValidString(text):
		return nil, fmt.Errorf("%s: the file is not text: a cell is a text file of equations in UTF-8", path)
	}
	tokens, wrong := scan(path, text)
	if wrong != nil {
		return nil, wrong
	}
	d, wrong := parse(path, tokens)
	if wrong != nil {
		return nil, wrong
	}
	c := d.cell()
	c.Name, c.Text = fmt.Sprintf("%s@%s", base, hash(tokens)), text
	c.Doc = cmp.Or(title(text), "equations of "+filepath.Base(path))
	program := lower(d)
	if len(program) > mostSteps {
		return nil, fmt.Errorf("%s: the cell is too large: a step takes %d operations, and at most %d are allowed", path, len(program), mostSteps)
	}
	made := cell.New(c, program)
	if err := errors.Join(bounded(made), check(d, made)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return made, nil
}

// hash identifies equations, whatever their comments and spaces: 8 digits of SHA-256.
func hash(tokens []token) string {
	var b strings.Builder
	for _, t := range tokens {
		if t.class == newline {
			t.text = "\n"
		}
		b.WriteString(t.text + " ")
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.TrimRight(b.String(), "\n "))))[:8]
}

// title is the comment on the first line; "": there is none.
func title(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "#"); ok {
		return strings.TrimSpace(comment)
	}
	return ""
}

// bounded returns an error if a program of c needs more vectors at once than devices offer.
func bounded(c *cell.Cell) error {
	for _, p := range []cell.Program{c.Inference, c.Forward, c.Backward} {
		reads, writes := p.Vectors()
		if n := len(reads) + len(writes) + p.Temps(); n > mostVectors {
			return fmt.Errorf("the cell is too large: a step needs %d values of each unit at once, and at most %d are allowed", n, mostVectors)
		}
	}
	return nil
}
