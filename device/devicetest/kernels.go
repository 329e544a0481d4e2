package devicetest

import (
	"fmt"

	"rnnbench/device"
)

// checkKernels returns an error if prog lists a kernel with invalid fields, or one twice.
func checkKernels(prog device.Program) error {
	seen := map[device.Kernel]bool{}
	for _, k := range prog.Kernels() {
		if k.Name == "" || k.Launches < 1 || k.Shared < 0 || k.Registers < 0 || k.Spills < 0 || k.Seconds < 0 {
			return fmt.Errorf("a kernel is %+v", k)
		}
		if k.Launches = 0; seen[k] {
			return fmt.Errorf("kernel %s is listed twice", k.Name)
		}
		seen[k] = true
	}
	return nil
}
