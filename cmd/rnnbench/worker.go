package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
)

func workerCommand(p *program) *cobra.Command {
	s := &settings{}
	var group, replica string
	cmd := &cobra.Command{
		Use: bench.WorkerVerb, Hidden: true, Args: noArgs,
		Short: "Answer the calls of device/worker for this machine's processor",
	}
	addGroup(cmd, "Device", func(f *pflag.FlagSet) {
		s.add(f, "threads", "N", "")
		s.simdFlag(f)
		f.StringVar(&group, "group", "", "file shared by replicas")
		f.StringVar(&replica, "replica", "", "which replica this is, as I/N")
	})
	return p.verb(cmd, func(context.Context, *cobra.Command, []string) error {
		return bench.Serve(p.in, p.out, func() (bench.Options, error) { // its errors go to the caller
			var flags config.Layer
			if t := s.values["threads"]; t.list != nil {
				if err := flags.Set("threads", t.list...); err != nil {
					return s.Options, err
				}
			}
			var err error
			s.Config, err = config.Resolve(flags)
			return s.Options, err
		}, group, replica)
	})
}
