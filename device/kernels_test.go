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
	var many []device.Kernel
	for i := range 2000 {
		many = append(many, device.Kernel{Name: "k", Shared: i, Launches: 2})
	}
	got := device.Merge(append(many, many...))
	if last := got[len(got)-1]; len(got) != 512 || last.Name != "others" || got[0].Launches != 4 || last.Launches != 4*(2000-511) {
		t.Errorf("%d kernels, and the last is %+v", len(got), last)
	}
	if got := device.Merge(nil); got == nil || len(got) != 0 {
		t.Errorf("of no kernels: %#v", got)
	}
}
