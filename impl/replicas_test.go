package impl_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"rnnbench/device"
	"rnnbench/device/allreduce"
	"rnnbench/device/cpu"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/emulator"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
)

// TestReplicas: with every technique, 1, 2 and 3 replicas have the gradients of one device with the
// whole minibatch. One replica has two workers, so that sums run beside one team and beside several.
func TestReplicas(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("replicas need Linux")
	}
	for n := 1; n <= 3; n++ {
		replicas := group(t, n, max(1, 3-n))
		for _, tech := range impl.Direct() {
			if testing.Short() && n == 1 && tech.Name() != "persistent" {
				continue
			}
			t.Run(fmt.Sprintf("%d/%s", n, tech.Name()), func(t *testing.T) { impltest.RunReplicas(t, replicas, tech) })
		}
	}
}

// TestEmulatedReplicas does so on CUDA devices without GPUs.
func TestEmulatedReplicas(t *testing.T) {
	if os.Getenv("RNNBENCH_EMULATE") == "" {
		t.Skip("make emulate runs it")
	}
	if runtime.GOOS != "linux" {
		t.Skip("replicas need Linux")
	}
	compiler, err := emulator.NewCompiler()
	if err != nil {
		t.Skip(err)
	}
	path, err := allreduce.Create(t.TempDir(), 2)
	if err != nil {
		t.Fatal(err)
	}
	var replicas []device.Device
	for i := range 2 {
		driver, err := emulator.New(8, uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		if driver.Group, err = allreduce.Join(path, i, 2); err != nil {
			t.Fatal(err)
		}
		d := cuda.New(driver, compiler, t.TempDir())
		t.Cleanup(func() { d.Close(); driver.Group.Close() })
		replicas = append(replicas, d)
	}
	for _, name := range []string{"persistent", "cudnnstyle"} {
		t.Run(name, func(t *testing.T) { impltest.RunReplicas(t, replicas, impl.Lookup(name)) })
	}
}

// group opens n CPU devices that train together.
func group(t *testing.T, n, threads int) []device.Device {
	path, err := allreduce.Create(t.TempDir(), n)
	if err != nil {
		t.Fatal(err)
	}
	var replicas []device.Device
	for i := range n {
		g, err := allreduce.Join(path, i, n)
		if err != nil {
			t.Fatal(err)
		}
		d, err := cpu.Open(cpu.Options{Threads: threads, Group: g})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close(); g.Close() })
		replicas = append(replicas, d)
	}
	return replicas
}
