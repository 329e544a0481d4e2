package tuner

import (
	"errors"

	"rnnbench/device"
	"rnnbench/results"
	"rnnbench/rnn"
)

// A Guest is a technique whose plans do not run on the device at hand but beside it, in a
// program from elsewhere. Of that device it takes the workers and the inputs.
type Guest interface {
	rnn.Technique
	Version() string
	Host() device.Device // that its plans run on
}

// host is what l runs on while others run on d.
func (l *Layout) host(d device.Device) device.Device {
	if g, ok := l.Technique.(Guest); ok {
		return g.Host()
	}
	return d
}

// rivalOf is what a record says of a guest; nil for others.
func rivalOf(t rnn.Technique) *results.Rival {
	if g, ok := t.(Guest); ok {
		return &results.Rival{Name: t.Name(), Version: g.Version()}
	}
	return nil
}

// failGuest ends a guest for the reason that err is. The device at hand is not to blame.
func (c *candidate) failGuest(err error) {
	switch {
	case errors.Is(err, device.ErrHang):
		c.decline(results.Timeout, results.ReasonHang, err.Error())
	default:
		c.decline(results.Failed, results.ReasonRival, err.Error())
	}
}
