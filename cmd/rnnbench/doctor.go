package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/record"
	"rnnbench/tuner/bench"
)

func doctorCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "doctor [flags]",
		Short:   "Check the speed, noise and measurement problems of this machine",
		GroupID: "manage",
		Long: `Doctor describes the machine and measures its peak rates and its noise. It lists
measurement problems with a remedy for each. Doctor takes a few seconds and exits with 0
even if it finds problems. It saves the measured memories and barriers in the user's cache
folder, for the floors in later records, and changes nothing else.

--machine saves the measured rates of caches, barriers and products to a file for
rnnbench model.`,
		Example: `  rnnbench doctor
  rnnbench doctor --threads 1 --simd avx2
  rnnbench doctor --machine here.toml && rnnbench model here.toml
  rnnbench doctor -o json > machine.json`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	var s settings
	s.device(cmd)
	var hideHost bool
	format, machine := "text", ""
	addGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.VarP(choice{&format, "format", []string{"text", "json"}}, "format", "o", "how to print: text, json")
		f.BoolVar(&hideHost, "no-hostname", false, "omit the host name")
		f.StringVar(&machine, "machine", "", "save the measured machine to a `FILE` for rnnbench model")
	})
	_ = cmd.MarkFlagFilename("machine", "toml") // the flag is there
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		if err := s.resolve(p); err != nil {
			return misused(cmd, err)
		}
		env := record.Capture(record.Options{Version: s.Version, HideHostname: hideHost}) // before a device binds threads
		b, err := bench.Open(s.Options, p)
		if err != nil {
			return misused(cmd, err)
		}
		defer b.Close()
		d, err := bench.Diagnose(ctx, b, env)
		if err != nil {
			return err
		}
		if machine != "" {
			if err := b.WriteMachine(machine); err != nil {
				return err
			}
			p.Note("wrote %s", machine)
		}
		if format == "json" {
			return p.json(d)
		}
		return d.Print(letters(p, p.out), fits(p, p.out))
	})
}
