package main

import (
	"fmt"
	"os"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/device/worker"
	"rnnbench/internal/exit"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// sleepVariable makes the worker that --isolate on starts sleep for this time after each run.
// Points then take a known time on any number of processors, so one machine can act as several
// nodes.
const sleepVariable = "RUNS_SLEEP"

// A sleeper is the CPU, but each run of a program sleeps afterwards. It measures no limits, since
// several sleepers share one machine.
type sleeper struct {
	device.Device
	each time.Duration
}

func (d sleeper) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	if err != nil {
		return nil, err
	}
	return sleepingProgram{p, d.each}, nil
}

type sleepingProgram struct {
	device.Program
	each time.Duration
}

func (p sleepingProgram) Run(n int) (device.Sample, error) {
	start := time.Now()
	s, err := p.Program.Run(n)
	time.Sleep(time.Duration(n) * p.each)
	s.Wall = time.Since(start)
	return s, err
}

// serveSleeper runs the worker with a sleeper.
func serveSleeper(each string) int {
	err := worker.Serve(os.Stdin, os.Stdout, func(string) (device.Device, error) {
		d, err := time.ParseDuration(each)
		if err != nil {
			return nil, err
		}
		c, err := cpu.Open(cpu.Options{Threads: 1})
		return sleeper{c, d}, err
	}, func() { os.Exit(exit.Error) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exit.Error
	}
	return exit.Done
}
