package grid

import (
	"errors"
	"fmt"
	"maps"
)

// ModelAxes lists the axes that a layer of a model sets.
func ModelAxes() []string {
	return []string{"cell", "hidden", "input", "layers", "direction", "projection", "weights"}
}

// addModels adds the layers of the models of r.
func (g *Grid) addModels(r Request, zipped map[string]bool) error {
	switch {
	case len(r.Models) == 0 && len(r.Layers) > 0:
		return errors.New("--layer names a layer of a model: add --model FILE")
	case len(r.Models) == 0:
		return nil
	case g.words.Model == nil:
		return errors.New("a model's file can only be given to commands that measure")
	}
	for _, name := range ModelAxes() {
		_, given := r.Axes[name]
		if given && len(r.Presets) == 0 && len(r.Points) == 0 {
			return fmt.Errorf("--%s has no effect, because every layer of --model sets %s: remove one", name, name)
		}
		if zipped[name] {
			return fmt.Errorf("--model and --zip both set %s: remove one", name)
		}
	}
	layers, err := g.words.Model(r.Models, r.Layers)
	if err != nil {
		return fmt.Errorf("--model: %w", err)
	}
	for _, axes := range layers {
		merged := maps.Clone(r.Axes)
		if merged == nil {
			merged = map[string]string{}
		}
		maps.Copy(merged, axes)
		if err := g.add(r, merged, "--model: ", zipped); err != nil {
			return err
		}
	}
	return nil
}
