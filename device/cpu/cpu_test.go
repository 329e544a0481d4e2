package cpu_test

import (
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/devicetest"
)

// TestDevice runs the suite with every instruction set and with one, two and
// three workers, more than some machines have.
func TestDevice(t *testing.T) {
	for level := simd.Generic; level <= simd.Detect(); level++ {
		t.Run(level.String(), func(t *testing.T) {
			for _, threads := range []int{1, 2, 3} {
				d, err := cpu.Open(cpu.Options{Threads: threads, Level: &level})
				if err != nil {
					t.Fatal(err)
				}
				devicetest.Run(t, d)
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
