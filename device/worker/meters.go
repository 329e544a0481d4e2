package worker

import "rnnbench/device"

// Limits implements device.Meter; a device that is none has none.
func (d *Device) Limits() (device.Limits, error) {
	if err := d.start(); err != nil {
		return device.Limits{}, err
	}
	r, err := d.call(compiling*d.o.Timeout, request{Call: callLimits}, nil, nil)
	return r.Limits, err
}

// Hierarchy implements device.Prober; a device that is none has no memories.
func (d *Device) Hierarchy() (device.Hierarchy, error) {
	if err := d.start(); err != nil {
		return device.Hierarchy{}, err
	}
	r, err := d.call(compiling*d.o.Timeout, request{Call: callHierarchy}, nil, nil)
	return r.Hierarchy, err
}

// Power implements device.PowerMeter; for a device that is none it is an error.
func (d *Device) Power() (device.Power, error) {
	if err := d.start(); err != nil {
		return device.Power{}, err
	}
	r, err := d.call(d.o.Timeout, request{Call: callPower}, nil, nil)
	return r.Power, err
}

// Inspect implements device.Inspector; a device that is none finds nothing.
func (d *Device) Inspect() ([]device.Finding, error) {
	if err := d.start(); err != nil {
		return nil, err
	}
	r, err := d.call(d.o.Timeout, request{Call: callInspect}, nil, nil)
	return r.Findings, err
}
