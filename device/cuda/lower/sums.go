package lower

import (
	"fmt"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// sumOver returns the sum over replicas. A GPU that trains alone needs none.
func (e *emitter) sumOver(op schedule.AllReduce) ([]launch.Command, error) {
	switch n := e.Properties.Replicas; {
	case n == 0 && op.Replicas == 1:
		return nil, nil
	case n == 0:
		return nil, fmt.Errorf("cuda: %w: a sum over %d replicas needs as many GPUs, but this one is alone", schedule.ErrDevice, op.Replicas)
	case n != op.Replicas:
		return nil, fmt.Errorf("cuda: %w: a sum over %d replicas needs as many GPUs, but there are %d", schedule.ErrDevice, op.Replicas, n)
	}
	sum := &driver.Sum{}
	for _, v := range op.Sums {
		rows, values := 1, v.Rows*v.Cols
		if v.Cols != v.M.Cols {
			rows, values = v.Rows, v.Cols
		}
		for i := range rows {
			sum.Vectors = append(sum.Vectors, driver.Vector{At: e.At(v.Band(i, 1)), Values: values, Element: e.Element(v)})
		}
	}
	return []launch.Command{{Sum: sum}}, nil
}
