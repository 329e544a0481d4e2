package emulator

import (
	"fmt"

	"rnnbench/device/cuda/driver"
)

// Sequence implements driver.Driver.
func (d *Driver) Sequence(calls []driver.Call) (driver.Sequence, error) {
	d.next++
	d.sequences[d.next] = calls
	return d.next, nil
}

// Issue implements driver.Driver.
func (d *Driver) Issue(s driver.Sequence) (int, error) {
	for i := range d.sequences[s] {
		if err := d.call(&d.sequences[s][i]); err != nil {
			return i, err
		}
	}
	return 0, nil
}

func (d *Driver) call(c *driver.Call) error {
	switch {
	case c.Launch != nil:
		return d.launch(c.Stream, c.Launch)
	case c.Product != nil:
		return d.multiply(c.Stream, c.Product)
	case c.Network != nil:
		return d.runNetwork(c.Stream, c.Network)
	case c.Sum != nil:
		return d.sum(c.Stream, c.Sum)
	case c.Graph != nil:
		return d.Replay(*c.Graph)
	case c.Copy != nil && c.Copy.Out:
		return d.CopyOut(c.Copy.Host, c.Copy.GPU)
	case c.Copy != nil:
		return d.CopyIn(c.Copy.GPU, c.Copy.Host, c.Stream)
	case c.Wait:
		return d.WaitFor(c.Event, c.Stream)
	case c.Outside && !d.capturing:
		return fmt.Errorf("emulator: event %d is of no graph", c.Event)
	case c.Outside:
		d.events[c.Event].captured = false
		return d.push(command{stream: c.Stream, wait: -1, record: int(c.Event)})
	}
	return d.Record(c.Event, c.Stream)
}

// FreeSequence implements driver.Driver.
func (d *Driver) FreeSequence(s driver.Sequence) error {
	delete(d.sequences, s)
	return nil
}
