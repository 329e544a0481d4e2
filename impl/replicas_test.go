package impl_test

import (
	"fmt"
	"runtime"
	"testing"

	"rnnbench/device"
	"rnnbench/device/allreduce"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
)

// TestReplicas: by every technique, gradients over 1, 2 and 3 replicas are those of one device
// with the whole minibatch. One replica has two workers, so that sums run beside a team and
// beside several.
func TestReplicas(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("replicas need Linux")
	}
	for n := 1; n <= 3; n++ {
		replicas := group(t, n, max(1, 3-n))
		for _, tech := range impl.Own() {
			if testing.Short() && n == 1 && tech.Name() != "persistent" {
				continue
			}
			t.Run(fmt.Sprintf("%d/%s", n, tech.Name()), func(t *testing.T) { impltest.RunReplicas(t, replicas, tech) })
		}
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
