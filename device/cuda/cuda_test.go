package cuda_test

import (
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/cuda/emulator"
	"rnnbench/device/devicetest"
)

// TestEmulated runs the suite of devices on the emulator.
func TestEmulated(t *testing.T) {
	compiler, err := emulator.NewCompiler()
	if err != nil {
		t.Skip(err)
	}
	driver, err := emulator.New(8, 1)
	if err != nil {
		t.Fatal(err)
	}
	d := cuda.New(driver, compiler, t.TempDir())
	defer d.Close()
	devicetest.Run(t, d)
}
