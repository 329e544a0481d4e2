package record

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// askSystem asks the kernel for what it does not publish as files.
func (e *Environment) askSystem() {
	text := func(name string, into *string) {
		if s, err := unix.Sysctl(name); err == nil && s != "" {
			*into = strings.TrimSpace(s)
		}
	}
	text("machdep.cpu.brand_string", &e.CPU.Model)
	text("kern.osrelease", &e.Host.Kernel)
	text("kern.osproductversion", &e.Host.System)
	if n, err := unix.SysctlUint32("hw.physicalcpu"); err == nil {
		e.CPU.Cores = int(n)
	}
	if n, err := unix.SysctlUint64("hw.memsize"); err == nil {
		e.Memory.Total = int64(n)
	}
	if t, err := unix.SysctlTimeval("kern.boottime"); err == nil {
		seconds, _ := t.Unix()
		e.Host.Boot = time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	}
}
