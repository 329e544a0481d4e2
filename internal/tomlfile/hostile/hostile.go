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

// whole is the size of a file in bytes; with -short, a file has a sixteenth of it. A reader should
// read it within patience of processor time. A slow processor or the race detector may need more.
// So a test fails beyond patience only if the time also grows much faster than the size. It always
// fails beyond most. A slow file is read up to tries times, and the shortest time counts: the
// first reading also waits for the system to provide the memory, which may take longer than the rest.
const (
	whole    = 4<<20 - 1<<10
	patience = 4 * time.Second
	most     = 10 * patience
	tries    = 5
	growth   = 8 // of the time at four times the size; quadratic time grows 16-fold
)

// part divides the size of files.
var part = 1

func size() int {
	if testing.Short() {
		return whole / 16 / part
	}
	return whole / part
}

// repeat appends f(0), f(1), … to head as long as the result fits the size of a file.
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

// texts returns hostile files that begin with head, by the name of their shape.
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

// Try calls parse with hostile files that begin with head, and with the files of more, which the
// caller makes by Repeat. parse may return anything, but soon, and its errors must be short.
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
		for i := 1; i < tries && took > patience; i++ {
			again, _ := timed(parse, text)
			took = min(took, again)
		}
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

// timed returns the processor time that parse takes, and its error.
func timed(parse func(text []byte) error, text string) (time.Duration, error) {
	start := clock()
	err := parse([]byte(text))
	return clock() - start, err
}

// Repeat appends f(0), f(1), … to head, as many as fit the largest file that is read.
func Repeat(head string, f func(i int) string) string { return repeat(head, f) }
