package main

import (
	"io"
	"os"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"rnnbench/plots/table"
)

// globalFlags are those of every command.
func (p *program) globalFlags() *pflag.FlagSet {
	return grouped("Output", func(f *pflag.FlagSet) {
		p.color = "auto"
		f.BoolVarP(&p.quiet, "quiet", "q", false, "print data and errors only")
		f.BoolVarP(&p.verbose, "verbose", "v", false, "log what is being done")
		f.Var(choice{&p.color, "colour", []string{"auto", "always", "never"}}, "color",
			"colour tables: auto, always or never; NO_COLOR and CLICOLOR_FORCE are honoured")
		f.BoolVar(&p.ascii, "ascii", false, "no character outside ASCII in tables")
	})
}

// terminal reports whether w is a terminal that can be drawn on.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// width is how many columns w has.
func (p *program) width(w io.Writer) int {
	const usual = 100
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return max(columns, 40)
		}
	}
	return usual
}

// style says how tables on stdout look.
func (p *program) style() table.Options {
	o := table.Options{TTY: terminal(p.out), ASCII: p.ascii}
	switch p.color {
	case "always":
		o.Color = true
	case "auto":
		force := os.Getenv("CLICOLOR_FORCE")
		o.Color = os.Getenv("NO_COLOR") == "" && (o.TTY || force != "" && force != "0")
	}
	return o
}
