package record

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// askSystem asks the kernel for what it does not publish as files.
func (e *Environment) askSystem() {
	v := windows.RtlGetVersion()
	e.Host.Kernel = fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
	e.Host.System = "Windows"
}
