package launch

import (
	"fmt"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
)

// A Batch is calls of device functions that share one launch. Each call has a layer (z) of the
// grid.
type Batch struct {
	Calls       []call
	Grid, Block [3]int
}

// A call is a device function with its arguments.
type call struct {
	function string
	args     []uint64
}

// Add adds a call with arguments of type int or driver.Pointer.
func (l *Batch) Add(function string, args ...any) {
	c := call{function: function}
	for _, a := range args {
		switch a := a.(type) {
		case int:
			c.args = append(c.args, uint64(a))
		case driver.Pointer:
			c.args = append(c.args, uint64(a))
		}
	}
	l.Calls = append(l.Calls, c)
}

// Batch launches a kernel whose blocks each make one of the calls. All functions have parameters of
// the same types, separated by ", ". text defines the functions.
func (t *Target) Batch(name, types, text string, all Batch) Command {
	if len(all.Calls) > 1 {
		name += "_several"
	}
	words := []any{name, " ", text}
	for _, c := range all.Calls {
		words = append(words, " ", c.function)
	}
	source := t.Source(func() codegen.Source {
		var params, cases []string
		for i, c := range all.Calls {
			var args []string
			for k, kind := range strings.Split(types, ", ") {
				args = append(args, fmt.Sprintf("a%d_%d", i, k))
				params = append(params, kind+" "+args[k])
			}
			cases = append(cases, fmt.Sprintf("  if (blockIdx.z == %d) %s(%s);\n", i, c.function, strings.Join(args, ", ")))
		}
		return codegen.Source{Name: name, Text: text + fmt.Sprintf("extern \"C\" __global__ void __launch_bounds__(256) %s(%s) {\n  begin_next();\n  wait_previous();\n%s}\n",
			name, strings.Join(params, ", "), strings.Join(cases, ""))}
	}, words...)
	var args []uint64
	for _, c := range all.Calls {
		args = append(args, c.args...)
	}
	l := New(source, all.Grid, all.Block, args...)
	l.Early = t.Properties.Capability >= 90
	return l
}
