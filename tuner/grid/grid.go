// Package grid turns a request into the points and techniques to measure.
//
// A request has sizes and words on axes, exact points, presets, conditions and techniques, in one
// grammar for flags and files. The package knows cells, techniques and devices only by the names
// that it is given. It does not know how a point is measured.
package grid

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/internal/nearest"
	"rnnbench/record"
	"rnnbench/rnn/axis"
)

// Nearest and Unknown are those of package nearest.
var (
	Nearest = nearest.Word
	Unknown = nearest.Unknown
)

// A Request is a grid in the words of flags and files.
//
// Without presets and points the grid is the product of all axes. A preset adds its own points, where
// an axis in Axes replaces the preset's. An exact point adds one point for each value of the axes
// that it leaves out. So does a layer of a model.
type Request struct {
	Axes     map[string]string // values by the name of the axis
	Zips     []Zip
	Points   []string
	Presets  []string
	Models   []string   // files of models
	Layers   []string   // names of layers to take from Models; none: all
	Where    []string   // conditions, all of which must hold
	Exclude  [][]string // rules: a point that meets all conditions of one is excluded
	Impl     []string   // lists of specs; none: all techniques
	SkipImpl []string
}

// Plain reports whether the grid is the product of the axes alone.
func (r Request) Plain() bool {
	return len(r.Presets) == 0 && len(r.Points) == 0 && len(r.Models) == 0
}

// A Grid is a parsed request.
type Grid struct {
	words   Vocabulary
	blocks  []block
	plain   bool // the product of the axes: no preset, no points
	specs   []Spec
	where   []Condition
	exclude [][]Condition
}

// A block is a product of dimensions, outermost first.
type block []dimension

// A dimension is one axis, or several in lock-step.
type dimension struct {
	axes []string
	rows [][]any
}

// New parses a request.
func New(r Request, v Vocabulary) (*Grid, error) {
	g := &Grid{words: v, plain: r.Plain()}
	for _, name := range slices.Sorted(maps.Keys(r.Axes)) {
		if _, err := axisNamed(name); err != nil {
			return nil, err
		}
	}
	zipped := map[string]bool{}
	for _, z := range r.Zips {
		if err := z.check(); err != nil {
			return nil, fmt.Errorf("--zip: %w", err)
		}
		for _, name := range z.Axes {
			if zipped[name] {
				return nil, fmt.Errorf("--zip names %s twice", name)
			}
			zipped[name] = true
			if _, both := r.Axes[name]; both && z.Rows != nil {
				return nil, fmt.Errorf("--%s and the values of a zip both set %s: remove one", name, name)
			}
		}
	}
	if g.plain {
		if err := g.add(r, nil, "", zipped); err != nil {
			return nil, err
		}
	}
	for _, name := range unique(r.Presets) {
		p, err := presetNamed(name)
		if err != nil {
			return nil, fmt.Errorf("--preset: %w", err)
		}
		for _, axes := range p.Blocks {
			merged := maps.Clone(axes)
			maps.Copy(merged, r.Axes)
			if err := g.add(r, merged, "--preset "+name+": ", zipped); err != nil {
				return nil, err
			}
		}
	}
	if err := g.addPoints(r, zipped); err != nil {
		return nil, err
	}
	if err := g.addModels(r, zipped); err != nil {
		return nil, err
	}
	var err error
	all := v.All
	if all == nil {
		all = v.Impls
	}
	if g.specs, err = parseSpecs(r.Impl, r.SkipImpl, v.Impls, all); err != nil {
		return nil, err
	}
	if g.where, err = parseConditions("--where", r.Where, v, g.specs); err != nil {
		return nil, err
	}
	for _, rule := range r.Exclude {
		list, err := parseConditions("exclude", rule, v, nil)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("exclude: a rule without conditions excludes everything: write a condition")
		}
		g.exclude = append(g.exclude, list)
	}
	return g, nil
}

// addPoints adds the exact points of r.
func (g *Grid) addPoints(r Request, zipped map[string]bool) error {
	useless := maps.Clone(r.Axes) // axes that every point sets too
	for _, text := range r.Points {
		point, err := ParsePoint(text)
		if err != nil {
			return fmt.Errorf("--point: %w", err)
		}
		merged := maps.Clone(r.Axes)
		if merged == nil {
			merged = map[string]string{}
		}
		for name := range point {
			if zipped[name] {
				return fmt.Errorf("--point %s and --zip both set %s: remove one", text, name)
			}
		}
		for name := range useless {
			if _, ok := point[name]; !ok {
				delete(useless, name)
			}
		}
		maps.Copy(merged, point)
		if err := g.add(r, merged, "--point "+text+": ", zipped); err != nil {
			return err
		}
	}
	if len(r.Points) > 0 && len(r.Presets) == 0 {
		for _, name := range slices.Sorted(maps.Keys(useless)) {
			return fmt.Errorf("--%s has no effect, because every --point sets %s: remove one", name, name)
		}
	}
	return nil
}

// add adds the product of axes, with defaults for missing ones; nil stands for the request's axes.
// origin begins error messages, and zipped names the axes in zips.
func (g *Grid) add(r Request, axes map[string]string, origin string, zipped map[string]bool) error {
	if axes == nil {
		axes = r.Axes
	}
	list := map[string][]any{}
	for _, a := range axis.All() {
		text, given := axes[a.Name]
		if !given {
			text = a.DefaultAt(axes)
		}
		vals, err := parse(a, text, g.words)
		if err != nil {
			return fmt.Errorf("%s--%s: %w", origin, a.Name, err)
		}
		list[a.Name] = vals
	}
	var b block
	done := map[string]bool{}
	for _, a := range axis.All() {
		if done[a.Name] {
			continue
		}
		d := dimension{axes: []string{a.Name}}
		if zipped[a.Name] {
			i := slices.IndexFunc(r.Zips, func(z Zip) bool { return slices.Contains(z.Axes, a.Name) })
			var err error
			if d, err = g.zip(r.Zips[i], axes, list); err != nil {
				return err
			}
		} else {
			for _, v := range unique(list[a.Name]) {
				d.rows = append(d.rows, []any{v})
			}
		}
		for _, name := range d.axes {
			done[name] = true
		}
		b = append(b, d)
	}
	g.blocks = append(g.blocks, b)
	total := 0
	for _, b := range g.blocks {
		n := 1
		for _, d := range b {
			if n *= len(d.rows); n > MaxPoints {
				break
			}
		}
		if total += n; total > MaxPoints {
			return fmt.Errorf("the grid has more than %d points: use fewer values", MaxPoints)
		}
	}
	return nil
}

// parseConditions reads conditions and checks their words. Techniques that --skip-impl removed are
// still valid words.
func parseConditions(flag string, texts []string, v Vocabulary, specs []Spec) ([]Condition, error) {
	var list []Condition
	for _, text := range texts {
		c, err := ParseCondition(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		words := []string(nil)
		switch c.key {
		default:
			if a, ok := axis.Named(c.key); ok && !a.Sized() && !a.Open {
				words = v.of(a)
			}
		case "impl":
			if words = v.Impls; words != nil && !strings.Contains(c.word, ":") {
				words = slices.Clone(words)
				for _, s := range specs {
					if !slices.Contains(words, s.Label) {
						words = append(words, s.Label)
					}
				}
			} else {
				words = nil
			}
		}
		if words != nil && !slices.Contains(words, c.word) {
			return nil, fmt.Errorf("%s: %w", flag, Unknown(c.key, c.word, words))
		}
		list = append(list, c)
	}
	return list, nil
}

// Specs returns the techniques in the order asked for, each with a label.
func (g *Grid) Specs() []Spec { return slices.Clone(g.specs) }

// Points returns the points that at least one technique is to run, each once. The last axes change
// fastest.
func (g *Grid) Points() ([]record.Point, error) {
	var kept []record.Point
	for _, p := range g.shapes() {
		wanted := false
		for _, s := range g.specs {
			ok, err := g.Wants(p, s)
			if err != nil {
				return nil, err
			}
			if wanted = ok; ok || !g.ofTechnique() {
				break
			}
		}
		if wanted {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("no point is left: %s", g.filters())
	}
	return kept, nil
}

// Wants reports whether the conditions and rules let s run p.
func (g *Grid) Wants(p record.Point, s Spec) (bool, error) {
	ok, err := all(g.where, p, s, g.words)
	if !ok || err != nil {
		return false, err
	}
	for _, rule := range g.exclude {
		out, err := all(rule, p, s, g.words)
		if out || err != nil {
			return false, err
		}
	}
	return true, nil
}

// ofTechnique reports whether a condition depends on the technique too, not on the point alone.
func (g *Grid) ofTechnique() bool {
	return slices.ContainsFunc(append(slices.Concat(g.exclude...), g.where...), Condition.ofTechnique)
}

// filters names the conditions that can leave points out.
func (g *Grid) filters() string {
	var parts []string
	for _, c := range g.where {
		parts = append(parts, "--where "+c.String())
	}
	if len(g.exclude) > 0 {
		parts = append(parts, "the exclude rules")
	}
	if len(parts) == 0 {
		return "the grid has no values"
	}
	return "all are excluded by " + strings.Join(parts, ", ")
}

// shapes lists the points before conditions apply.
func (g *Grid) shapes() []record.Point {
	axes := map[string]axis.Axis{}
	for _, a := range axis.All() {
		axes[a.Name] = a
	}
	var list []record.Point
	for _, b := range g.blocks {
		total := 1
		for _, d := range b {
			total *= len(d.rows)
		}
		for i := range total {
			var p record.Point
			rest := i
			for _, d := range slices.Backward(b) {
				row := d.rows[rest%len(d.rows)]
				rest /= len(d.rows)
				for j, name := range d.axes {
					axes[name].Set(&p, row[j])
				}
			}
			if p.Input == 0 {
				p.Input = p.Hidden
			}
			list = append(list, p)
		}
	}
	return unique(list)
}

// Summary describes the size of the grid in one line: a record is one technique at one point.
func (g *Grid) Summary() (string, error) {
	shapes := g.shapes()
	all, wanted := len(shapes)*len(g.specs), 0
	for _, p := range shapes {
		for _, s := range g.specs {
			ok, err := g.Wants(p, s)
			if err != nil {
				return "", err
			}
			if ok {
				wanted++
			}
		}
	}
	var factors []string
	product := 1
	if g.plain {
		for _, d := range g.blocks[0] {
			product *= len(d.rows)
			if len(d.rows) > 1 {
				factors = append(factors, fmt.Sprintf("%d %s", len(d.rows), strings.Join(d.axes, ",")))
			}
		}
	}
	if !g.plain || product != len(shapes) {
		factors = []string{count(len(shapes), "shape")}
	}
	if len(g.specs) > 1 || len(factors) > 0 {
		factors = append(factors, count(len(g.specs), "technique"))
	}
	line := count(all, "record")
	if len(factors) > 0 {
		line += " = " + strings.Join(factors, " × ")
	}
	if wanted < all {
		line += fmt.Sprintf("; %d excluded by conditions", all-wanted)
	}
	return line, nil
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Hash is the hash of a plan: the same points and techniques have the same hash.
func Hash(points []record.Point, specs []Spec) string {
	h := sha256.New()
	for _, p := range points {
		fmt.Fprintf(h, "%+v\n", p)
	}
	for _, s := range specs {
		fmt.Fprintf(h, "%v\n", s)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}
