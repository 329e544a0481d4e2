package cpu_test

import (
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/devicetest"
)

// TestDevice runs the suite with every instruction set on one worker and on two. With the best
// instruction set it also runs on three, which is more than some machines have; with others workers take turns.
func TestDevice(t *testing.T) {
	var devices []device.Device
	for level := simd.Generic; level <= simd.Detect(); level++ {
		workers := []int{1, 2}
		if level == simd.Detect() {
			workers = append(workers, 3)
		}
		for _, n := range workers {
			d, err := cpu.Open(cpu.Options{Threads: n, Level: &level, InTurn: level < simd.Detect()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}()
			devices = append(devices, d)
		}
	}
	devicetest.Run(t, devices...)
}
