package cpu

import (
	"slices"

	"rnnbench/device"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

var _ device.Interpreter = (*Device)(nil)

// Interpreted implements device.Interpreter.
func (d *Device) Interpreted(s *schedule.Schedule) (cells []string) {
	level, known := d.kernels.Level(), map[cellPass]bool{}
	step := func(c *cell.Cell, pass fused.Pass) bool { return fused.New(level, c, pass).Assembled() }
	loop := func(c *cell.Cell, pass fused.Pass) bool { return fused.NewLoop(level, c, pass).Assembled() }
	look := func(c *cell.Cell, pass fused.Pass, assembled func(*cell.Cell, fused.Pass) bool) {
		if key := (cellPass{c, pass}); !known[key] {
			known[key] = true
			if !assembled(c, pass) && !slices.Contains(cells, c.Name) {
				cells = append(cells, c.Name)
			}
		}
	}
	for op := range s.Operations() {
		switch op := op.(type) {
		case schedule.Cell:
			look(op.Cell, pass(op.Train), step)
		case schedule.CellBackward:
			look(op.Cell, fused.Backward, step)
		case schedule.Persistent:
			look(op.Cell, pass(op.Train), step)
		case schedule.PersistentBackward:
			look(op.Cell, fused.Backward, step)
		case schedule.Scan:
			look(op.Cell, pass(op.Train), loop)
		case schedule.ScanBackward:
			look(op.Cell, fused.Backward, loop)
		}
	}
	return cells
}
