package main

import (
	"cmp"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"rnnbench/plots/table"
)

// globalFlags returns the flags of every command.
func (p *program) globalFlags() *pflag.FlagSet {
	return grouped("Output", func(f *pflag.FlagSet) {
		p.color = "auto"
		f.BoolVarP(&p.quiet, "quiet", "q", false, "print data and errors only")
		f.BoolVarP(&p.verbose, "verbose", "v", false, "log each step")
		f.Var(choice{&p.color, "colour", []string{"auto", "always", "never"}}, "color",
			"colour tables: auto, always or never; NO_COLOR and CLICOLOR_FORCE are honoured")
		f.BoolVar(&p.ascii, "ascii", false, "use only ASCII characters, as in a locale without UTF-8")
		p.ascii = plainLocale(os.Getenv)
	})
}

// plainLocale reports whether the environment names a locale whose characters are not UTF-8. An
// environment that names none, as in a container, says nothing.
func plainLocale(getenv func(string) string) bool {
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	_, charset, named := strings.Cut(locale, ".")
	return locale == "c" || locale == "posix" || named && !strings.HasPrefix(strings.ReplaceAll(charset, "-", ""), "utf8")
}

// letters returns w, in ASCII where that was asked for.
func letters(p *program, w io.Writer) io.Writer {
	if p.ascii {
		return table.Letters(w)
	}
	return w
}

// terminal reports whether w is a terminal that can be drawn on.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// width returns how many columns w has; pageWidth if w is not a terminal.
func (p *program) width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return pageWidth
	}
	size := func() (int, error) { n, _, err := term.GetSize(int(f.Fd())); return n, err }
	return columns(size, os.Getenv("COLUMNS"))
}

// columns returns a terminal's width by its size, else by the variable COLUMNS, else 80; at least 40.
func columns(size func() (int, error), variable string) int {
	const usual, least = 80, 40
	n, err := size()
	if err != nil || n <= 0 {
		if n, err = strconv.Atoi(variable); err != nil || n <= 0 {
			n = usual
		}
	}
	return max(n, least)
}

// fits returns the width that tables on w must fit; 0: no limit.
func fits(p *program, w io.Writer) int {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return p.width(w)
	}
	return 0
}

// pageStyle returns the style of tables of sentences. They fit a page if stdout is not a terminal.
func pageStyle(p *program) table.Options {
	o := p.style()
	o.Width = p.width(p.out)
	return o
}

// style returns the style of tables on stdout.
func (p *program) style() table.Options {
	o := table.Options{TTY: terminal(p.out), ASCII: p.ascii, Width: fits(p, p.out)}
	switch p.color {
	case "always":
		o.Color = true
	case "auto":
		force := os.Getenv("CLICOLOR_FORCE")
		o.Color = os.Getenv("NO_COLOR") == "" && (o.TTY || force != "" && force != "0")
	}
	return o
}
