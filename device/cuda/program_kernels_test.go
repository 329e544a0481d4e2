package cuda_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/emulator"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// loaded is a driver that knows its kernels' resources.
type loaded struct{ recorder }

func (l *loaded) Load(image []byte, name string) (driver.Kernel, error) {
	k, err := l.recorder.Load(image, name)
	k.Registers, k.Static, k.Local = 168, 16, 8
	return k, err
}

// kernelsOf returns the kernels of a layer on an H200.
func kernelsOf(t *testing.T, l devicetest.Layer, stepwise bool, k knob.Params) []device.Kernel {
	t.Helper()
	s, err := devicetest.Case{Layer: l, Stepwise: stepwise}.Build()
	if err != nil {
		t.Fatal(err)
	}
	none, err := emulator.New(8, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { none.Close() })
	r := &loaded{recorder{Driver: none, properties: h200()}}
	p, err := cuda.New(r, r, "").Compile(s, k)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(p.Kernels(), func(k device.Kernel) bool { return k.Name == "arrange" || k.Name == "transpose" }) // these pack weights, within the schedule here
}

// TestProgramKernels: a program reports a persistent kernel's function, variant, geometry,
// resources and predicted time.
func TestProgramKernels(t *testing.T) {
	layer := devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 16, Steps: 100, Precision: schedule.BF16}
	all := kernelsOf(t, layer, false, nil)
	if len(all) != 1 {
		t.Fatalf("kernels are %+v", all)
	}
	k := all[0]
	if k.Variant != "mma" || !strings.Contains(k.Name, "mma") || !strings.Contains(k.Name, "512") || k.Launches != 1 {
		t.Errorf("the kernel is %+v", k)
	}
	if k.Grid[0]%k.Cluster != 0 || k.Block[0]%32 != 0 || !strings.Contains(k.Config, "units per block: ") {
		t.Errorf("its geometry is %+v", k)
	}
	if k.Registers != 168 || k.Spills != 8 || k.Shared <= 16 {
		t.Errorf("it takes %d registers, %d bytes of spills, %d of shared memory", k.Registers, k.Spills, k.Shared)
	}
	if g := k.Group; g.Blocks != k.Cluster || g.Spread || !g.Tensor || g.Samples < 1 || g.Steps != 100 {
		t.Errorf("its group is %+v, and its clusters have %d blocks", g, k.Cluster)
	}
	layer.Steps = 200
	if twice := kernelsOf(t, layer, false, nil)[0]; k.Seconds <= 0 || math.Abs((twice.Seconds-4e-6)/(k.Seconds-4e-6)-2) > 1e-9 {
		t.Errorf("100 steps are expected to take %v s, 200 steps %v s", k.Seconds, twice.Seconds)
	}
	if b := kernelsOf(t, layer, false, knob.Params{"resident": 3})[0]; b.Variant != "barrier" || b.Seconds != 0 || b.Group.Blocks != b.Grid[0] || !b.Group.Spread || b.Group.Tensor {
		t.Errorf("with a barrier, the kernel is %+v", b)
	}
}

// TestProgramKernelsMerge: kernels of equal geometry are merged, with the number of launches.
func TestProgramKernelsMerge(t *testing.T) {
	all := kernelsOf(t, devicetest.Layer{Cell: cell.GRU, Hidden: 64, Batch: 8, Steps: 5, Precision: schedule.FP32}, true, knob.Params{"narrow": 2})
	launches := 0
	for _, k := range all {
		launches += k.Launches
		if k.Launches%5 != 0 {
			t.Errorf("of five steps, kernel %+v", k)
		}
	}
	if len(all) < 2 || launches != 5*len(all) {
		t.Errorf("%d kernels are launched %d times: %+v", len(all), launches, all)
	}
}
