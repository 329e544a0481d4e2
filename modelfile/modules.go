package modelfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rnnbench/rnn"
	"rnnbench/rnn/axis"
	"rnnbench/rnn/cell"
)

// A stored is a tensor of a file that is not read yet.
type stored struct {
	name  string
	shape []int
	kind  number
	read  func() ([]float32, error) // in row-major order

	// What the file says of the tensor's module: LSTM, GRU or RNN, and tanh or relu; "": nothing.
	operator, activation string
}

// A part is a parameter of a module: one of those of Problem.Named, of one layer and way.
type part struct {
	what    string
	layer   int
	reverse bool
}

// A module is the tensors of one of PyTorch's recurrent modules: LSTM, GRU or RNN, which may be a
// stack, or LSTMCell, GRUCell or RNNCell, which is one layer.
type module struct {
	name   string
	cell   bool // names have no number of a layer
	layers int  // one more than the largest number
	ways   int  // 2: a name is of the way from the last step
	of     map[part]stored
	others []string // names of the module's other tensors

	operator, activation string // as stored has them
}

// parameter matches the name of a parameter: the module, the parameter, the layer and the way.
var parameter = regexp.MustCompile(`(?s)^(?:(.*)\.)?(weight_ih|weight_hh|weight_hr|bias_ih|bias_hh)(?:_l(0|[1-9][0-9]{0,3})(_reverse)?)?$`)

// layersOf groups tensors by the names that PyTorch's modules give them, in the order of the first
// ones. Such files have no states before the first step: who calls a module gives them, or PyTorch
// takes 0. So do these layers.
func layersOf(tensors []stored) ([]Layer, error) {
	modules, err := modulesOf(tensors)
	if err != nil {
		return nil, err
	}
	var layers []Layer
	taken := map[string]bool{}
	for _, m := range modules {
		of, err := m.read()
		if err != nil {
			return nil, err
		}
		for _, l := range of {
			if l.Name == "" { // the model is the module
				l.Name = "rnn"
			}
			for taken[l.Name] {
				l.Name += "_"
			}
			taken[l.Name], l.Zeros = true, true
			layers = append(layers, l)
		}
	}
	return layers, nil
}

func modulesOf(tensors []stored) ([]*module, error) {
	var modules []*module
	found := map[string][2]*module{} // by name: one with numbers of layers, one without
	for _, t := range tensors {
		match := parameter.FindStringSubmatch(t.name)
		if match == nil {
			continue
		}
		kind, layer := 1, 0
		if match[3] != "" {
			kind = 0
			layer, _ = strconv.Atoi(match[3]) // the pattern has seen to it
		}
		both := found[match[1]]
		m := both[kind]
		if m == nil {
			m = &module{name: match[1], cell: kind == 1, ways: 1, of: map[part]stored{}, operator: t.operator, activation: t.activation}
			both[kind], modules = m, append(modules, m)
			found[m.name] = both
		}
		p := part{match[2], layer, match[4] != ""}
		if m.layers = max(m.layers, layer+1); p.reverse {
			m.ways = 2
		}
		if _, ok := m.of[p]; ok {
			return nil, fmt.Errorf("two tensors are called %s", short(t.name))
		}
		m.of[p] = t
	}
	for _, t := range tensors {
		if parameter.MatchString(t.name) {
			continue
		}
		at := len(t.name)
		for range 2 { // a tensor of the module, or of one within it
			if at = strings.LastIndexByte(t.name[:at], '.'); at < 0 {
				break
			}
			for _, m := range found[t.name[:at]] {
				if m != nil {
					m.others = append(m.others, t.name[at+1:])
				}
			}
		}
	}
	return modules, nil
}

// called is the name of p in m.
func (m *module) called(p part) string {
	switch {
	case m.cell:
		return p.what
	case p.reverse:
		return fmt.Sprintf("%s_l%d_reverse", p.what, p.layer)
	}
	return fmt.Sprintf("%s_l%d", p.what, p.layer)
}

// sizes are those of one layer.
type sizes struct{ gates, input, hidden, projection int }

// read reads m as one stack or, where layers differ in size, as the stacks of equal ones.
func (m *module) read() ([]Layer, error) {
	var each []sizes
	for n := range m.layers {
		s, err := m.sizes(n)
		if err != nil {
			return []Layer{{Name: m.name, Operator: m.operator, Declined: err.Error()}}, nil
		}
		each = append(each, s)
	}
	var layers []Layer
	for from := 0; from < m.layers; {
		to := from + 1
		for above := each[from]; to < m.layers; to++ {
			if above.input = m.ways * above.emits(); each[to] != above || m.biased(to) != m.biased(from) {
				break
			}
		}
		l, err := m.stack(from, to, each[from])
		if err != nil {
			return nil, err
		}
		if to-from < m.layers {
			l.Name = fmt.Sprintf("%s_l%d", m.name, from)
		}
		layers, from = append(layers, l), to
	}
	return layers, nil
}

// emits is the width of the layer's output in one way.
func (s sizes) emits() int {
	if s.projection > 0 {
		return s.projection
	}
	return s.hidden
}

// biased reports whether layer n has a bias.
func (m *module) biased(n int) bool {
	for _, what := range []string{"bias_ih", "bias_hh"} {
		for _, reverse := range []bool{false, true} {
			if _, ok := m.of[part{what, n, reverse}]; ok {
				return true
			}
		}
	}
	return false
}

// sizes returns those of layer n, or why it cannot be measured.
func (m *module) sizes(n int) (sizes, error) {
	s, err := m.way(n, false)
	if err != nil || m.ways == 1 {
		return s, err
	}
	back, err := m.way(n, true)
	if err == nil && back != s {
		err = fmt.Errorf("the two ways of layer %d differ in size", n)
	}
	return s, err
}

// shape returns that of a parameter, or why the parameter cannot be read.
func (m *module) shape(p part, dimensions int) ([]int, error) {
	t, ok := m.of[p]
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is missing", m.called(p))
	case len(t.shape) != dimensions || slices.Min(t.shape) < 1:
		return nil, fmt.Errorf("%s has the shape %v, not one of %d sizes above 0", m.called(p), t.shape, dimensions)
	case t.kind.value == nil:
		return nil, fmt.Errorf("%s has values of type %s: only float32, float16, bfloat16 and float64 are read", m.called(p), t.kind.name)
	}
	return t.shape, nil
}

// cells are those of a layer, by the rows of its weights for each unit. Whether a simple unit has
// tanh or relu is not in its sizes.
var cells = map[int]*cell.Cell{1: cell.RNNTanh, 3: cell.GRU, 4: cell.LSTM}

// way returns the sizes of one way of layer n, or why it cannot be measured.
func (m *module) way(n int, reverse bool) (sizes, error) {
	name := func(what string) string { return m.called(part{what, n, reverse}) }
	hh, err := m.shape(part{"weight_hh", n, reverse}, 2)
	if err != nil {
		return sizes{}, err
	}
	rows, s := hh[0], sizes{hidden: hh[1]}
	_, projected := m.of[part{"weight_hr", n, reverse}]
	if projected {
		hr, err := m.shape(part{"weight_hr", n, reverse}, 2)
		if err != nil {
			return sizes{}, err
		}
		if s.projection, s.hidden = hr[0], hr[1]; s.projection != hh[1] {
			return sizes{}, fmt.Errorf("%s has %d rows, but %s has %d columns", name("weight_hr"), hr[0], name("weight_hh"), hh[1])
		}
	}
	s.gates = rows / s.hidden
	switch {
	case rows%s.hidden != 0 || cells[s.gates] == nil:
		return sizes{}, fmt.Errorf("%s has %d rows for %d units: an LSTM has 4 for each, a GRU 3, a simple unit 1", name("weight_hh"), rows, s.hidden)
	case projected && s.gates != 4:
		return sizes{}, fmt.Errorf("%s is a projection, which only an LSTM has in PyTorch", name("weight_hr"))
	}
	ih, err := m.shape(part{"weight_ih", n, reverse}, 2)
	if err != nil {
		return sizes{}, err
	}
	if s.input = ih[1]; ih[0] != rows {
		return sizes{}, fmt.Errorf("%s has %d rows, but %s has %d", name("weight_ih"), ih[0], name("weight_hh"), rows)
	}
	for _, what := range []string{"bias_ih", "bias_hh"} {
		if _, ok := m.of[part{what, n, reverse}]; !ok && !m.biased(n) {
			continue
		}
		bias, err := m.shape(part{what, n, reverse}, 1)
		if err != nil {
			return sizes{}, err
		}
		if bias[0] != rows {
			return sizes{}, fmt.Errorf("%s has %d values, but %s has %d rows", name(what), bias[0], name("weight_hh"), rows)
		}
	}
	return s, nil
}

// stack reads layers [from, to), which have these sizes.
func (m *module) stack(from, to int, s sizes) (Layer, error) {
	c, notes := m.cellOf(s)
	if !m.biased(from) {
		notes = append(notes, "there are no biases: they are taken as 0")
	}
	l := Layer{
		Name: m.name, Operator: m.operator, Note: strings.Join(notes, "; "),
		Point: axis.Point{Cell: c.Name, Input: s.input, Hidden: s.hidden, Layers: to - from, Projection: s.projection},
	}
	if m.ways == 2 {
		l.Point.Direction = axis.Direction(rnn.BothWays.String())
	}
	whole := l.Point
	whole.Batch, whole.Steps, whole.Pass, whole.Precision = 1, 1, rnn.Forward.String(), rnn.FP32.String()
	p, err := rnn.Of(whole)
	if err != nil {
		l.Declined, l.Note = strings.TrimPrefix(err.Error(), "rnn: "), ""
		return l, nil
	}
	parameters := []string{"weight_ih", "weight_hh", "bias_ih", "bias_hh"} // in the order of rnn.NewData
	if s.projection > 0 {
		parameters = append(parameters, "weight_hr")
	}
	for i := range p.Reads() {
		for _, what := range parameters {
			t := rnn.Tensor{Name: p.Named(what, i), Rows: 1, Cols: s.gates * s.hidden}
			from, ok := m.of[part{what, from + i/m.ways, i%m.ways == 1}]
			if !ok { // a layer without biases
				t.Values = make([]float32, t.Cols)
				l.Tensors = append(l.Tensors, t)
				continue
			}
			if len(from.shape) == 2 {
				t.Rows, t.Cols = from.shape[0], from.shape[1]
			}
			if t.Values, err = from.read(); err != nil {
				return Layer{}, fmt.Errorf("tensor %s: %w", short(from.name), err)
			}
			l.Tensors = append(l.Tensors, t)
		}
	}
	return l, nil
}

// cellOf returns the cell of a layer, and what its user should know of that.
func (m *module) cellOf(s sizes) (c *cell.Cell, notes []string) {
	c = cells[s.gates]
	if c == cell.RNNTanh {
		switch m.activation {
		case "":
			notes = append(notes, "tanh is assumed: the file does not say whether the units have tanh or relu")
		case "relu":
			c = cell.RNNReLU
		}
	}
	switch n := len(m.others); {
	case n == 1:
		notes = append(notes, fmt.Sprintf("left out: %s, which PyTorch's module does not have", short(m.others[0])))
	case n > 1:
		notes = append(notes, fmt.Sprintf("left out: %s and %d more tensors, which PyTorch's module does not have", short(m.others[0]), n-1))
	}
	return c, notes
}
