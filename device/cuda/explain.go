package cuda

import (
	"fmt"
	"slices"

	"rnnbench/device"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

var _ device.Explainer = (*Device)(nil)

// mostFound is how many findings of a pass an explanation lists.
const mostFound = 100

// Explain implements device.Explainer. If a kernel turns out not to fit, it returns the choices
// with the error. If there is a GPU, kernels are compiled and loaded, so that their registers are
// known.
func (d *Device) Explain(s *schedule.Schedule, k knob.Params) (device.Explanation, error) {
	var e device.Explanation
	p, err := d.Trace(s, k, func(pass string, found []string) {
		if n := len(found) - mostFound; n > 0 {
			found = append(slices.Clone(found[:mostFound]), fmt.Sprintf("and %d more", n))
		}
		e.Passes = append(e.Passes, device.Pass{Name: pass, Found: found})
	})
	if err != nil {
		return e, err
	}
	e.Choices = p.Choices()
	_, nodes, err := p.Emit(0)
	if err != nil {
		return e, err
	}
	all := slices.Concat(nodes...)
	if _, none := d.driver.(blueprint); !none {
		if err := d.load(all); err != nil {
			return e, err
		}
	}
	e.Kernels = launch.Kernels(all)
	return e, nil
}
