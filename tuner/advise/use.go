package advise

import (
	"fmt"
	"strings"

	"rnnbench/record"
)

// modules are the classes of torch.nn and of rnnbench_torch by cell.
var modules = map[string]string{"lstm": "LSTM", "gru": "GRU", "rnn-tanh": "RNN", "rnn-relu": "RNN"}

// use returns the lines that put auto's layer in the place of the model's. They are Python where the
// model is PyTorch's, or there is no model, and C elsewhere.
func (m Model) use(p record.Point) []string {
	class, ok := modules[p.Cell]
	cell, _, _ := strings.Cut(p.Cell, "@")
	switch {
	case m.File != "" && !(m.Torch && ok):
		return m.useC(p, cell)
	case m.Torch:
		var lines []string
		for _, name := range m.Layers[p.Weights] {
			lines = append(lines, fmt.Sprintf("model.%s = %s.from_torch(model.%[1]s)", name, class))
		}
		return append([]string{"from rnnbench_torch import " + class}, lines...)
	case ok:
		return []string{"from rnnbench_torch import " + class, fmt.Sprintf("fast = %s.from_torch(module)  # a torch.nn.%[1]s", class)}
	}
	return []string{"from rnnbench_torch import Layer", fmt.Sprintf("fast = Layer(%q, %d, %d, num_layers=%d)", cell, p.Input, p.Hidden, p.Layers)}
}

// useC returns the calls of the C library, and the command that writes the weights by their names.
func (m Model) useC(p record.Point, cell string) []string {
	description := fmt.Sprintf("cell=%s,input=%d,hidden=%d,layers=%d", cell, p.Input, p.Hidden, p.Layers)
	if p.Direction != "" {
		description += ",direction=" + p.Direction.String()
	}
	if p.Projection > 0 {
		description += fmt.Sprintf(",projection=%d", p.Projection)
	}
	if p.Precision != "fp32" {
		description += ",precision=" + p.Precision
	}
	layer := ""
	if names := m.Layers[p.Weights]; len(names) > 0 {
		layer = fmt.Sprintf(" --layer '%s'", names[0])
	}
	lines := []string{
		fmt.Sprintf("rnnbench export --model '%s'%s -B 1 -T 1 -f weights.npz", m.File, layer),
		fmt.Sprintf("rnnbench_layer(device, %q, &layer);", description),
		fmt.Sprintf("rnnbench_plan(layer, %d, %d, %q, \"auto\", NULL, &plan);  /* then rnnbench_bind the arrays of weights.npz */", p.Batch, p.Steps, p.Pass),
	}
	if n := len(m.Layers[p.Weights]); n > 1 {
		lines = append(lines, fmt.Sprintf("/* and the same for %d more layers */", n-1))
	}
	return lines
}
