package emulator

import (
	"errors"

	"rnnbench/device/cuda/driver"
)

// sum queues a sum over the replicas of Group.
func (d *Driver) sum(stream int, s *driver.Sum) error {
	if d.Group == nil {
		return errors.New("emulator: there are no other replicas")
	}
	parts := make([][]byte, len(s.Vectors))
	for i, v := range s.Vectors {
		var err error
		if parts[i], err = d.view(v.At, int64(v.Values)*int64(v.Element.Bytes())); err != nil {
			return err
		}
	}
	return d.push(command{stream: stream, wait: -1, record: -1, do: func() error {
		vectors := make([][]float32, len(parts))
		for i, v := range s.Vectors {
			vectors[i] = make([]float32, v.Values)
			if v.Element == driver.Single {
				copy(driver.Bytes(vectors[i]), parts[i])
			} else {
				driver.Decode(vectors[i], parts[i], v.Element)
			}
		}
		if err := d.Group.Sum(vectors...); err != nil {
			return err
		}
		for i, v := range s.Vectors {
			copy(parts[i], driver.Encode(vectors[i], v.Element))
		}
		return nil
	}})
}
