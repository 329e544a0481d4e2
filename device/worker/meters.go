package worker

import "rnnbench/device"

// Limits implements device.Meter. The result is zero if the device is no Meter.
func (d *Device) Limits() (device.Limits, error) {
	if err := d.start(); err != nil {
		return device.Limits{}, err
	}
	r, err := d.call(compiling*d.o.Timeout, request{Call: callLimits}, nil, nil)
	return r.Limits, err
}

// Hierarchy implements device.Prober. The result is zero if the device is no Prober.
func (d *Device) Hierarchy() (device.Hierarchy, error) {
	if err := d.start(); err != nil {
		return device.Hierarchy{}, err
	}
	r, err := d.call(compiling*d.o.Timeout, request{Call: callHierarchy}, nil, nil)
	return r.Hierarchy, err
}

// Power implements device.PowerMeter. It returns an error if the device is no PowerMeter.
func (d *Device) Power() (device.Power, error) {
	if err := d.start(); err != nil {
		return device.Power{}, err
	}
	r, err := d.call(d.o.Timeout, request{Call: callPower}, nil, nil)
	return r.Power, err
}

// LaunchTime implements device.LaunchMeter. It is 0 if the device is no LaunchMeter.
func (d *Device) LaunchTime() (float64, error) {
	if err := d.start(); err != nil {
		return 0, err
	}
	r, err := d.call(d.o.Timeout, request{Call: callLaunchTime}, nil, nil)
	return r.Launch, err
}

// Inspect implements device.Inspector. The result is empty if the device is no Inspector.
func (d *Device) Inspect() ([]device.Finding, error) {
	if err := d.start(); err != nil {
		return nil, err
	}
	r, err := d.call(d.o.Timeout, request{Call: callInspect}, nil, nil)
	return r.Findings, err
}
