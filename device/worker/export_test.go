package worker

// Unshare makes matrices go through the pipe until the worker is restarted.
func (d *Device) Unshare() { d.shared = false }

// Shared reports whether matrices go through shared memory.
func (d *Device) Shared() bool { return d.shared }

// Kill kills the worker from outside, as a system without memory does.
func (d *Device) Kill() {
	_ = d.process.cmd.Process.Kill()
	d.process.reap()
}
