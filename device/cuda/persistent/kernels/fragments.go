package kernels

import (
	"fmt"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// FragmentBytes returns the size of a gate's weights as fragments, each of 16 units and 64 bytes of
// columns.
func FragmentBytes(hidden int, e driver.Element) int64 {
	return 1024 * int64(ints.CeilDiv(hidden, 16)) * int64(ints.CeilDiv(hidden*e.Bytes(), 64))
}

// PackFragments packs weights as the fragments that tensor cores multiply, gate by gate.
func PackFragments(t *launch.Target, op schedule.Pack) launch.Command {
	hidden := op.Dst.Rows
	column, unit := op.Src.M.Cols, 1
	if op.Trans {
		column, unit = unit, column
	}
	from, to, exact := t.Element(op.Src), t.Element(op.Dst), ints.FromBool(t.Precision == schedule.FP32)
	s := t.Source(func() codegen.Source {
		head := configure(codegen.Constants("SPREAD", 0, "ORDERED", 0, "BAND", 16, "EXACT", exact), "pack_fragments") +
			fmt.Sprintf("typedef %v FROM;\ntypedef %v W;\n", from, to)
		return codegen.Source{Name: "arrange", Text: head + file("recurrence").Text + file("fragments").Text + file("pack_fragments").Text}
	}, "arrange ", from, to, exact)
	quads := int(FragmentBytes(hidden, to) / 16)
	return launch.New(s, [3]int{ints.CeilDiv(quads, launch.BlockSize), op.Dst.Cols / hidden, 1}, [3]int{launch.BlockSize, 1, 1},
		uint64(hidden), uint64(t.At(op.Src)), uint64(column), uint64(unit), uint64(t.At(op.Dst)), t.Status())
}
