package modelfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"rnnbench/modelfile/pickle"
)

// storageNumbers are the formats that weights have, by the class of their storage, and storageBytes
// the sizes of all.
var (
	storageNumbers = map[string]number{"DoubleStorage": float64s, "FloatStorage": float32s, "HalfStorage": float16s, "BFloat16Storage": bfloats}
	storageBytes   = map[string]int{
		"DoubleStorage": 8, "FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2, "LongStorage": 8, "IntStorage": 4, "ShortStorage": 2,
		"CharStorage": 1, "ByteStorage": 1, "BoolStorage": 1, "ComplexFloatStorage": 8, "ComplexDoubleStorage": 16, "UntypedStorage": 1,
		"QInt8Storage": 1, "QUInt8Storage": 1, "QInt32Storage": 4, "QUInt4x2Storage": 1, "QUInt2x4Storage": 1,
	}
)

// storageOf reads what a pickle says of a storage: its class, its key, and where a view of it
// begins, in values. ok: it is a storage.
func storageOf(v any) (class, key string, view int, ok bool) {
	p, _ := v.(pickle.Persistent)
	id, _ := p.ID.(pickle.Tuple) // "storage", class, key, device, number of values and, in old files, its view
	if len(id) < 5 || id[0] != "storage" {
		return "", "", 0, false
	}
	g, _ := id[1].(pickle.Global)
	key, ok = id[2].(string)
	if len(id) > 5 && id[5] != nil {
		from, _ := id[5].(pickle.Tuple) // key, first value, number of values
		if len(from) != 3 {
			return "", "", 0, false
		}
		first, is := from[1].(int64)
		view, ok = int(first), ok && is && first >= 0 && first <= most
	}
	return g.Name, key, view, ok
}

// rebuilt reports whether o would be a tensor, or a parameter that is one.
func rebuilt(o *pickle.Object) bool {
	g, _ := o.Class.(pickle.Global)
	return g.Module == "torch._utils" && slices.Contains([]string{"_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_parameter", "_rebuild_parameter_with_state"}, g.Name)
}

// tensor reads what a pickle says of the tensor o.
func (f *torchFile) tensor(o *pickle.Object) (stored, error) {
	for strings.HasPrefix(o.Class.(pickle.Global).Name, "_rebuild_parameter") {
		if len(o.Args) == 0 {
			return stored{}, errors.New("it is a parameter without a tensor")
		}
		inner, _ := o.Args[0].(*pickle.Object)
		if inner == nil || !rebuilt(inner) {
			return stored{}, errors.New("it is a parameter without a tensor")
		}
		o = inner
	}
	if len(o.Args) < 4 { // the storage, the first value, the sizes, the strides
		return stored{}, errors.New("it is not as PyTorch writes tensors")
	}
	class, key, view, ok := storageOf(o.Args[0])
	first, at := o.Args[1].(int64)
	shape, sizes := numbers(o.Args[2])
	strides, steps := numbers(o.Args[3])
	if !ok || !at || !sizes || !steps || len(shape) != len(strides) {
		return stored{}, errors.New("it is not as PyTorch writes tensors")
	}
	n, err := count(shape)
	if err != nil {
		return stored{}, err
	}
	kind, ok := storageNumbers[class]
	if !ok {
		return stored{shape: shape, kind: number{name: strings.TrimSuffix(short(class), "Storage")}}, nil
	}
	data, ok := f.storages[key]
	if !ok {
		return stored{}, fmt.Errorf("the file has no storage %s", short(key))
	}
	if first < 0 || first > most {
		return stored{}, fmt.Errorf("it begins at value %d", first)
	}
	g := grid{f, data, kind, int(first) + view, shape, strides, n}
	return stored{shape: shape, kind: kind, read: g.read}, g.check()
}

// numbers returns the values of a tuple of integers.
func numbers(v any) ([]int, bool) {
	t, ok := v.(pickle.Tuple)
	var list []int
	for _, v := range t {
		n, is := v.(int64)
		list, ok = append(list, int(n)), ok && is
	}
	return list, ok
}

// A grid is where the values of a tensor lie in a storage.
type grid struct {
	f       *torchFile
	data    storage
	kind    number
	first   int
	shape   []int
	strides []int
	n       int // values
}

// check reports a grid that is not in its storage.
func (g grid) check() error {
	last := g.first
	for i, size := range g.shape {
		stride := g.strides[i]
		if stride < 0 || stride > most || size > 1 && stride > most/size {
			return fmt.Errorf("its stride is %d", stride)
		}
		last += max(0, size-1) * stride
	}
	if has := g.data.size / int64(g.kind.bytes); g.n > 0 && int64(last) >= has {
		return fmt.Errorf("its sizes are %v, but its storage has %d values", g.shape, has)
	}
	return nil
}

// read reads the values.
func (g grid) read() ([]float32, error) {
	span := 1
	dense, inner := true, 1 // the values lie side by side, in their order
	for i := len(g.shape) - 1; i >= 0; i-- {
		span += (g.shape[i] - 1) * g.strides[i]
		dense = dense && (g.shape[i] == 1 || g.strides[i] == inner)
		inner *= g.shape[i]
	}
	if g.f.left -= max(g.n, span); g.f.left < 0 {
		return nil, errors.New("tensors share storages so often that their values take many times the memory of the file")
	}
	values, err := g.kind.floats(g.f, g.data.at+int64(g.first*g.kind.bytes), span)
	if err != nil || dense {
		return values, err
	}
	out := make([]float32, 0, g.n)
	at := make([]int, len(g.shape))
	for range g.n {
		from := 0
		for i, k := range at {
			from += k * g.strides[i]
		}
		out = append(out, values[from])
		for i := len(at) - 1; i >= 0; i-- {
			if at[i]++; at[i] < g.shape[i] {
				break
			}
			at[i] = 0
		}
	}
	return out, nil
}

// What a file's values may be: names of tensors in letters, and containers in each other.
const (
	mostName  = 1000
	mostDepth = 64
)

// A search finds the tensors of a pickle's value.
type search struct {
	seen  map[any]bool // by the address of an object, or of a tuple's first value
	found []found
	err   error
}

// A found is a tensor with the dicts and lists that hold it. Within a module of PyTorch, its name is
// that of state_dict.
type found struct {
	holders []string
	tensor  *pickle.Object
	stored
}

// tensors returns the tensors of a file's value: a state_dict, or dicts, lists and modules that hold
// some. A holder that all tensors of recurrent layers have is left out of their names.
func (f *torchFile) tensors(value any) ([]stored, error) {
	s := search{seen: map[any]bool{}}
	s.visit(value, place{})
	if s.err != nil {
		return nil, s.err
	}
	var common []string
	first := true
	for _, t := range s.found {
		switch {
		case !parameter.MatchString(t.name):
		case first:
			common, first = t.holders, false
		default:
			n := 0
			for n < min(len(common), len(t.holders)) && common[n] == t.holders[n] {
				n++
			}
			common = common[:n]
		}
	}
	if first {
		return nil, nothing(value)
	}
	var tensors []stored
	for _, t := range s.found {
		own := len(common)
		if len(t.holders) < own || !slices.Equal(t.holders[:own], common) {
			continue
		}
		name := strings.Join(append(slices.Clone(t.holders[own:]), t.name), ".")
		if parameter.MatchString(name) {
			at, err := f.tensor(t.tensor)
			if err != nil {
				return nil, fmt.Errorf("tensor %s: %w", short(name), err)
			}
			t.shape, t.kind, t.read = at.shape, at.kind, at.read
		}
		t.stored.name = name
		tensors = append(tensors, t.stored)
	}
	return tensors, nil
}

// nothing says why no tensor of a recurrent layer was found.
func nothing(value any) error {
	o, ok := value.(*pickle.Object)
	if !ok {
		return errors.New("it holds no state_dict: save model.state_dict()")
	}
	g := classOf(o)
	if g.Module == "builtins" || g.Module == "collections" || strings.HasPrefix(g.Module, "__torch__") {
		return errNone
	}
	return fmt.Errorf("it holds an object of %s, in which there are no parameters of recurrent layers, and nothing of a file is run: save model.state_dict()", short(g.String()))
}

// A place is where a value is: in holders, and then in modules.
type place struct {
	holders []string
	module  string // what precedes the names of parameters
	depth   int

	operator, activation string
}

// visit looks for tensors in v and in what it holds. It looks into each object once.
func (s *search) visit(v any, at place) {
	if at.depth++; at.depth > mostDepth {
		s.fail("its values are in each other more than %d deep: save model.state_dict() alone", mostDepth)
	}
	if s.err != nil {
		return
	}
	if t, ok := v.(pickle.Tuple); ok && len(t) > 0 && !s.seen[&t[0]] {
		s.seen[&t[0]] = true
		s.list(t, at)
	}
	o, ok := v.(*pickle.Object)
	if !ok || s.seen[o] || rebuilt(o) {
		return
	}
	s.seen[o] = true
	state, _ := o.State.(*pickle.Object)
	if state == nil {
		state = &pickle.Object{}
	}
	class := classOf(o)
	parameters, _ := state.Get("_parameters").(*pickle.Object)
	modules, _ := state.Get("_modules").(*pickle.Object)
	switch {
	case strings.HasPrefix(class.Module, "__torch__"):
		s.module(state, state, at)
	case parameters != nil && modules != nil:
		at.operator, at.activation = operatorOf(class, state)
		s.module(parameters, modules, at)
	default:
		s.dict(o, at)
		s.dict(state, at)
		s.list(o.Items, at)
	}
}

// classOf returns the class of o. Old files keep the source of a module's class beside its name.
func classOf(o *pickle.Object) pickle.Global {
	class := o.Class
	if p, ok := class.(pickle.Persistent); ok {
		if id, _ := p.ID.(pickle.Tuple); len(id) > 1 && id[0] == "module" {
			class = id[1]
		}
	}
	g, _ := class.(pickle.Global)
	return g
}

// operatorOf returns what a module of PyTorch says of itself.
func operatorOf(class pickle.Global, state *pickle.Object) (operator, activation string) {
	mode, _ := state.Get("mode").(string)
	if class.Module == "torch.nn.modules.rnn" && mode == "" {
		mode = strings.TrimSuffix(class.Name, "Cell")
	}
	if operator, activation, _ = strings.Cut(mode, "_"); operator == "RNN" && activation == "" {
		activation, _ = state.Get("nonlinearity").(string)
	}
	if !slices.Contains([]string{"LSTM", "GRU", "RNN"}, operator) {
		return "", ""
	}
	return operator, strings.ToLower(activation)
}

// module takes the tensors of a module's parameters, and visits the modules in it.
func (s *search) module(parameters, modules *pickle.Object, at place) {
	for _, p := range entries(parameters) {
		if name, ok := p.Key.(string); ok {
			s.take(p.Value, name, at)
		}
	}
	for _, p := range entries(modules) {
		name, ok := p.Key.(string)
		if o, is := p.Value.(*pickle.Object); ok && is && o.State != nil {
			in := at
			in.module += name + "."
			s.visit(o, in)
		}
	}
}

// entries returns those of a dict. Python 2 makes an OrderedDict of a list of them.
func entries(o *pickle.Object) []pickle.Pair {
	if !o.Is("collections", "OrderedDict") || len(o.Args) != 1 {
		return o.Pairs
	}
	var pairs []pickle.Pair
	list, _ := o.Args[0].(*pickle.Object)
	for i := 0; list != nil && i < len(list.Items); i++ {
		if p, ok := list.Items[i].(*pickle.Object); ok && len(p.Items) == 2 {
			pairs = append(pairs, pickle.Pair{Key: p.Items[0], Value: p.Items[1]})
		}
	}
	return append(pairs, o.Pairs...)
}

// dict takes the tensors of a dict, and visits its other values.
func (s *search) dict(o *pickle.Object, at place) {
	for _, p := range entries(o) {
		key, ok := p.Key.(string)
		if n, is := p.Key.(int64); is {
			key, ok = fmt.Sprint(n), true
		}
		if ok && !s.take(p.Value, key, at) {
			in := at
			in.holders = append(slices.Clip(at.holders), short(key))
			s.visit(p.Value, in)
		}
	}
}

func (s *search) list(values []any, at place) {
	for i, v := range values {
		in := at
		in.holders = append(slices.Clip(at.holders), fmt.Sprint(i))
		s.visit(v, in)
	}
}

// take keeps v under its name if it is a tensor.
func (s *search) take(v any, name string, at place) bool {
	o, ok := v.(*pickle.Object)
	if !ok || !rebuilt(o) {
		return false
	}
	if name = at.module + name; len(name) > mostName {
		s.fail("the name of a tensor has %d letters: %d at most are read", len(name), mostName)
	}
	if s.err == nil {
		s.found = append(s.found, found{at.holders, o, stored{name: name, operator: at.operator, activation: at.activation}})
	}
	return true
}

func (s *search) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}
