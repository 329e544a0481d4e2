package worker

// Unshare has matrices go through the pipe until the worker starts anew.
func (d *Device) Unshare() { d.shared = false }

// Shared reports whether they go through memory that both ends share.
func (d *Device) Shared() bool { return d.shared }

// Kill ends the worker from outside, as a system without memory does.
func (d *Device) Kill() {
	_ = d.process.cmd.Process.Kill()
	d.process.reap()
}
