package bench

import (
	"fmt"
	"strconv"

	"rnnbench/cells"
	"rnnbench/modelfile"
	"rnnbench/rnn"
	"rnnbench/rnn/axis"
	"rnnbench/rnn/cell"
	"rnnbench/tuner/grid"
)

// readModels reads the named layers of models' files, or all that can be measured. It registers their
// cells and weights, and returns what each layer sets on the axes of grid.ModelAxes.
func readModels(files, names []string) ([]map[string]string, error) {
	var models []*modelfile.File
	for _, path := range files {
		f, err := modelfile.Read(path)
		if err != nil {
			return nil, err
		}
		models = append(models, f)
	}
	layers, err := modelfile.Pick(models, names)
	if err != nil {
		return nil, err
	}
	var all []map[string]string
	for _, l := range layers {
		axes, err := register(l)
		if err != nil {
			return nil, fmt.Errorf("layer %s: %w", l.Name, err)
		}
		all = append(all, axes)
	}
	return all, nil
}

// register makes a layer's cell and weights known.
func register(l modelfile.Layer) (map[string]string, error) {
	p := l.Point
	if cell.Lookup(p.Cell) == nil {
		c, err := cells.Load(p.Cell)
		if err != nil {
			return nil, err
		}
		p.Cell = c.Name
	}
	p.Weights = l.ID
	small := p
	small.Pass, small.Precision, small.Batch, small.Steps = "forward", "fp32", 1, 1
	problem, err := rnn.Of(small)
	if err != nil {
		return nil, err
	}
	w := rnn.Weights{ID: l.ID, Tensors: l.Tensors, Zeros: l.Zeros}
	if err := w.Fits(problem); err != nil {
		return nil, err
	}
	rnn.RegisterWeights(w)
	axes := map[string]string{}
	for _, name := range grid.ModelAxes() {
		a, _ := axis.Named(name)
		switch v := a.Value(&p).(type) {
		case int:
			axes[name] = strconv.Itoa(v)
		case string:
			axes[name] = v
		}
	}
	if p.Projection == 0 {
		axes["projection"] = "none"
	}
	return axes, nil
}

// readWeights checks that weights are known.
func readWeights(id string) (string, error) {
	known := append([]string{"random"}, rnn.KnownWeights()...)
	for _, k := range known {
		if k == id {
			return id, nil
		}
	}
	return "", fmt.Errorf("there are no weights %s: --model FILE sets the weights of its layers", id)
}
