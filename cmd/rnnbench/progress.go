package main

import (
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/tuner/agenda"
	"rnnbench/tuner/progress"
)

// Values of --progress: as suits stderr, and JSON for other programs.
const (
	progressAuto = "auto"
	progressJSON = "json"
)

// progressFlag adds the flag that says how progress is shown.
func progressFlag(p *program, cmd *cobra.Command) {
	p.progress = progressAuto
	addGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.Var(choice{&p.progress, "way to show progress", []string{progressAuto, progressJSON}}, "progress",
			"progress on stderr: auto prints one line on a terminal and a line per point elsewhere; json prints all messages as objects, one per line")
	})
}

// Progress returns a display of a sweep's progress; f forecasts its time, and may be nil.
func (p *program) Progress(f *agenda.Forecast, total int) *progress.Progress {
	return progress.New(p.progressOptions(total), f)
}

// progressOptions returns how to show the progress of total records.
func (p *program) progressOptions(total int) progress.Options {
	o := progress.Options{
		W: speaker{p}, Rewrite: terminal(p.err) && p.progress != progressJSON, Width: p.width(p.err), ASCII: p.ascii,
		JSON: p.progress == progressJSON && !p.quiet, To: progress.Sender{W: speaker{p}, Start: p.start}, Total: total,
	}
	if p.quiet {
		o.W = io.Discard
	}
	return o
}

// sender returns a sender of JSON messages for other programs, on stderr.
func (p *program) sender() progress.Sender { return progress.Sender{W: p.err, Start: p.start} }
