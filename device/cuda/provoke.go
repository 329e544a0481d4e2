package cuda

import (
	"errors"
	"fmt"
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
)

// mishaps are kernels that break, for tests of what guards against them. Each takes the address of
// a zero word in the GPU's memory.
var mishaps = []string{"spin", "fault"}

// Provoke launches a kernel that spins for ever or reads out of bounds, and waits for it. The
// caller must be a process that can be lost.
func (d *Device) Provoke(mishap string) error {
	if !slices.Contains(mishaps, mishap) {
		return fmt.Errorf("cuda: no such kernel to break with: %q", mishap)
	}
	kernel := file(mishap)
	word, err := d.driver.Alloc(launch.Alignment)
	if err != nil {
		return err
	}
	end, err := d.driver.NewEvent(false)
	if err != nil {
		return err
	}
	l := launch.New(&kernel, [3]int{1, 1, 1}, [3]int{32, 1, 1}, uint64(word))
	if err := errors.Join(d.driver.Clear(driver.Extent{At: word, Bytes: launch.Alignment}), d.driver.Streams(1), d.load([]launch.Command{l})); err != nil {
		return err
	}
	s, err := d.driver.Sequence([]driver.Call{{Launch: l.Launch}})
	if err != nil {
		return err
	}
	if _, err := d.driver.Issue(s); err != nil {
		return err
	}
	return errors.Join(d.driver.Record(end, 0), d.driver.Await(end))
}
