package emulator

import (
	"errors"
	"fmt"

	"rnnbench/device/cuda/driver"
)

// A host program's streams have queues of their own, so that order with them is tested: see Work.

// firstHost is the number of the first stream of a host program, in commands.
const firstHost = 1 << 10

// host returns the number of a host program's stream.
func (d *Driver) host(stream uintptr) int {
	for i, s := range d.hosts {
		if s == stream {
			return firstHost + i
		}
	}
	d.hosts = append(d.hosts, stream)
	d.hostQueues = append(d.hostQueues, nil)
	return firstHost + len(d.hosts) - 1
}

// Work queues work of the host program on its stream.
func (d *Driver) Work(stream uintptr, do func()) error {
	return d.push(command{stream: d.host(stream), wait: -1, record: -1, do: func() error { do(); return nil }})
}

// Enter implements driver.Host.
func (d *Driver) Enter() (leave func(), err error) { return func() {}, nil }

// Fork implements driver.Host.
func (d *Driver) Fork(stream uintptr, e driver.Event) error {
	return errors.Join(d.Record(e, d.host(stream)), d.WaitFor(e, 0))
}

// Join implements driver.Host.
func (d *Driver) Join(stream uintptr, e driver.Event) error {
	return errors.Join(d.Record(e, 0), d.WaitFor(e, d.host(stream)))
}

// Capturing implements driver.Host.
func (d *Driver) Capturing(stream uintptr) (bool, error) {
	return d.hostCaptures && d.host(stream) == d.capturedHost, nil
}

// BeginHost begins to capture the work of a host program's stream, as the host program would.
func (d *Driver) BeginHost(stream uintptr) error {
	if d.capturing {
		return errors.New("emulator: a graph is being captured")
	}
	d.hostCaptures, d.capturedHost = true, d.host(stream)
	d.capturing, d.captured = true, nil
	return nil
}

// EndHost returns the captured graph. All streams with captured work must have joined that of the
// host program.
func (d *Driver) EndHost() (driver.Graph, error) {
	d.hostCaptures = false
	last := map[int]command{}
	for _, c := range d.captured {
		last[c.stream] = c
	}
	for stream, c := range last {
		if stream != d.capturedHost && c.record < 0 {
			return 0, fmt.Errorf("emulator: work on stream %d has not joined the capture's stream", stream)
		}
	}
	return d.EndCapture()
}

// alone returns an error if the host program captures a graph, while CUDA forbids action.
func (d *Driver) alone(action string) error {
	if d.hostCaptures {
		return fmt.Errorf("emulator: %s while the host program captures a graph", action)
	}
	return nil
}
