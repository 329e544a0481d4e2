package device_test

import (
	"reflect"
	"testing"

	"rnnbench/device"
)

func TestMerge(t *testing.T) {
	a := device.Kernel{Name: "a", Grid: [3]int{1, 1, 1}, Launches: 1}
	b := device.Kernel{Name: "a", Grid: [3]int{2, 1, 1}, Launches: 3}
	twice := a
	twice.Launches = 2
	if got := device.Merge([]device.Kernel{a, b, a}); !reflect.DeepEqual(got, []device.Kernel{twice, b}) {
		t.Errorf("got %+v", got)
	}
	if got := device.Merge(nil); got == nil || len(got) != 0 {
		t.Errorf("of no kernels: %#v", got)
	}
}
