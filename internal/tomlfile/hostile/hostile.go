// Package hostile generates TOML files that are slow to decode, for tests of TOML readers.
// Each has nearly four megabytes.
package hostile

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// whole is the size of a file, and with -short a file has a sixteenth of it. A reader has
// four seconds of processor time for a whole file. The limits of a test are far above
// that, for slow processors and the race detector. What takes time that grows with the
// square of the size exceeds them by far.
const (
	whole = 4<<20 - 1<<10
	limit = 40 * time.Second
)

func size() int {
	if testing.Short() {
		return whole / 16
	}
	return whole
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
// of. Whatever it returns, it has to return soon, and an error is short.
func Try(t *testing.T, head string, more map[string]string, parse func(text []byte) error) {
	t.Helper()
	all := texts(head)
	for name, text := range more {
		all[name] = text
	}
	all["too large"] = strings.Repeat("#\n", 3<<20)
	for name, text := range all {
		start := clock()
		err := parse([]byte(text))
		if took := clock() - start; took > limit {
			t.Errorf("%s: it took %v: %.200v", name, took, err)
		} else if testing.Verbose() {
			t.Logf("%s: %v: %.200v", name, took, err)
		}
		if err != nil && len(err.Error()) > 1<<14 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
		if name == "too large" && err == nil {
			t.Error("a file of six megabytes is read")
		}
	}
}

// Repeat is f(0), f(1), … behind head, as many as fit into a file that is read.
func Repeat(head string, f func(i int) string) string { return repeat(head, f) }
