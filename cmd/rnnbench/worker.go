package main

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/device"
	"rnnbench/device/allreduce"
	"rnnbench/device/worker"
	"rnnbench/tuner/config"
)

// workerVerb is the hidden command that makes this program the worker of its own processor.
const workerVerb = "worker"

func workerCommand(p *program) *cobra.Command {
	s := &settings{}
	var group, replica string
	cmd := &cobra.Command{
		Use: workerVerb, Hidden: true, Args: noArgs,
		Short: "Answer the calls of device/worker for this machine's processor",
	}
	addGroup(cmd, "Device", func(f *pflag.FlagSet) {
		s.add(f, "threads", "N", "")
		s.simdFlag(f)
		f.StringVar(&group, "group", "", "file shared by replicas")
		f.StringVar(&replica, "replica", "", "which replica this is, as I/N")
	})
	return p.verb(cmd, func(context.Context, *cobra.Command, []string) error {
		open := func(string) (device.Device, error) {
			var flags config.Layer
			if t := s.values["threads"]; t.list != nil {
				if err := flags.Set("threads", t.list...); err != nil {
					return nil, err
				}
			}
			c, err := config.Resolve(flags)
			if err != nil {
				return nil, err
			}
			place, err := allreduce.ParsePlace(group, replica)
			if err == nil {
				s.group, err = place.Join()
			}
			if err != nil {
				return nil, err
			}
			return s.openCPU(c)
		}
		return worker.Serve(p.in, p.out, open, func() { os.Exit(exitError) })
	})
}

// openIsolated opens the CPU in a process of its own, with the same settings as openCPU.
func (s *settings) openIsolated(c config.Config) (device.Device, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, &failure{exitNoDevice, err, "--isolate off measures in this process"}
	}
	args := []string{workerVerb, "--threads", strconv.Itoa(c.Measure.Threads)}
	if s.simd != "" {
		args = append(args, "--simd", s.simd)
	}
	d, err := openWorker("cpu", c.Measure, self, args...)
	if err != nil {
		return nil, &failure{exitNoDevice, err, "--isolate off measures in this process"}
	}
	return d, nil
}

// openWorker starts a program as the worker of the named device. A worker that is silent for much
// longer than a point may take counts as hung.
func openWorker(name string, m config.Measure, program string, args ...string) (*worker.Device, error) {
	return worker.Open(worker.Options{
		Command: func() *exec.Cmd { return exec.Command(program, args...) }, Device: name,
		Timeout: workerTimeout(m),
	})
}

func workerTimeout(m config.Measure) time.Duration { return max(time.Minute, 2*m.PointTimeout) }
