// Package hostile generates TOML files that are slow to decode, for tests of TOML readers.
// Each has nearly four megabytes.
package hostile

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// whole is the size of a file, and with -short a file has a sixteenth of it. A reader has
// patience of processor time for a whole file. A slow processor or the race detector may
// need more. So a test fails beyond patience only where the time also grows much faster
// than the size, and beyond most in any case.
const (
	whole    = 4<<20 - 1<<10
	patience = 4 * time.Second
	most     = 10 * patience
	growth   = 8 // at four times the size; time that grows with its square makes it sixteen
)

// part is what files are made a fraction of: one in part.
var part = 1

func size() int {
	if testing.Short() {
		return whole / 16 / part
	}
	return whole / part
}

// repeat appends f(0), f(1), … to head as far as there is room.
func repeat(head string, f func(i int) string) string {
	size := size()
	var b strings.Builder
	b.WriteString(head)
	for i := 0; ; i++ {
		next := f(i)
		if b.Len()+len(next) > size {
			return b.String()
		}
		b.WriteString(next)
	}
}

// texts are files of one shape each, which begin with head.
func texts(head string) map[string]string {
	size := size()
	return map[string]string{
		"headers of four parts": repeat(head, func(i int) string { return fmt.Sprintf("[a.b.c.d%d]\n", i) }),
		"headers apart":         repeat(head, func(i int) string { return fmt.Sprintf("[a%d.b.c.d]\nx=1\n", i) }),
		"keys":                  repeat(head, func(i int) string { return fmt.Sprintf("k%d=1\n", i) }),
		"dotted keys":           repeat(head, func(i int) string { return fmt.Sprintf("a.b.c.k%d=1\n", i) }),
		"arrays of tables":      repeat(head, func(i int) string { return fmt.Sprintf("[[a%d]]\n", i) }),
		"tables in arrays":      repeat(head, func(i int) string { return "[[a]]\n[[a.b]]\nx=1\n" }),
		"one inline table":      repeat(head+"a={", func(i int) string { return fmt.Sprintf("k%d=1,", i) }) + "z=1}\n",
		"inline tables":         repeat(head+"a=[", func(i int) string { return "{k=1}," }) + "]\n",
		"brackets":              head + "a=" + strings.Repeat("[", size-len(head)),
		"braces":                head + repeat("a=", func(int) string { return "{a=" }),
		"parts":                 head + repeat("a", func(int) string { return ".a" }) + "=1\n",
		"a long key":            head + strings.Repeat("k", size-len(head)-3) + "=1\n",
		"a long value":          head + "k='" + strings.Repeat("v", size-len(head)-5) + "'\n",
		"a long array":          repeat(head+"a=[", func(i int) string { return fmt.Sprint(i, ",") }) + "]\n",
		"comments":              head + strings.Repeat("#\n", size/2-len(head)),
		"NUL":                   head + strings.Repeat("\x00", size-len(head)),
	}
}

// Try has parse read hostile files which begin with head, and more that the test knows
// of, made by Repeat. Whatever it returns, it has to return soon, and an error is short.
func Try(t *testing.T, head string, more func() map[string]string, parse func(text []byte) error) {
	t.Helper()
	files := func() map[string]string {
		all := texts(head)
		maps.Copy(all, more())
		return all
	}
	all := files()
	part = 4
	quarters := files()
	part = 1
	for name, text := range all {
		took, err := timed(parse, text)
		if took > patience {
			if quarter, _ := timed(parse, quarters[name]); took > growth*quarter {
				t.Errorf("%s: a file of a quarter takes %v, and the whole %v", name, quarter, took)
			}
		}
		if took > most {
			t.Errorf("%s: it took %v: %.200v", name, took, err)
		}
		if testing.Verbose() {
			t.Logf("%s: %v: %.200v", name, took, err)
		}
		if err != nil && len(err.Error()) > 1<<14 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
	if took, err := timed(parse, strings.Repeat("#\n", 3<<20)); err == nil || took > patience {
		t.Errorf("a file of six megabytes: %v after %v", err, took)
	}
}

// timed is the processor time that parse takes, and its error.
func timed(parse func(text []byte) error, text string) (time.Duration, error) {
	start := clock()
	err := parse([]byte(text))
	return clock() - start, err
}

// Repeat is f(0), f(1), … behind head, as many as fit into a file that is read.
func Repeat(head string, f func(i int) string) string { return repeat(head, f) }
