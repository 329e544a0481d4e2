package tomlfile

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"rnnbench/internal/input"
)

// A survey estimates the decoder's work from the text scanned so far. To find a key, the decoder
// compares it with all keys that it has seen.
type survey struct {
	parser  unstable.Parser
	lines   Lines
	fields  fields
	unknown []Unknown

	words [][]byte       // path of the current key
	path  []byte         // words, joined by zero bytes
	live  map[string]int // keys in the inline tables at each path; holds every path so far
	sum   int            // keys that the decoder holds, at most
	cost  int            // comparisons of keys so far
}

// look scans text and adds up the cost of decoding it into v. It stops at a syntax error without
// an error of its own: the decoder will stop there, too, with a better message.
func look(text []byte, v any) ([]Unknown, error) {
	if len(text) > MaxBytes {
		return nil, &input.SizeError{Name: "the file", Most: MaxBytes}
	}
	s := survey{lines: NewLines(text), fields: fields{}, live: map[string]int{}}
	var root reflect.Type
	if v != nil {
		root = reflect.TypeOf(v).Elem()
	}
	table := root // type into which the current table is decoded; nil: unknown, or any
	s.parser.Reset(text)
	for s.parser.NextExpression() {
		e := s.parser.Expression()
		var err error
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			s.words, s.path = s.words[:0], s.path[:0]
			table, err = s.key(e, root)
			if err == nil { // the decoder also clears what an earlier table of that name holds
				err = s.count(e, 4*len(s.words))
			}
		case unstable.KeyValue:
			err = s.pair(e, table)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.unknown, nil
}

// pair counts the cost of a key with its value.
func (s *survey) pair(e *unstable.Node, table reflect.Type) error {
	words, path := len(s.words), len(s.path)
	defer func() { s.words, s.path = s.words[:words], s.path[:path] }()
	into, err := s.key(e, table)
	if err != nil {
		return err
	}
	if err := s.count(e, len(s.words)-words); err != nil {
		return err
	}
	inline, err := s.value(e.Value(), into)
	if err != nil {
		return err
	}
	if more := inline - s.live[string(s.path)]; more > 0 {
		s.sum += more
		s.live[string(s.path)] += more
	}
	return s.spend(e, inline*inline)
}

// key appends an expression's key to the path, and returns the type into which it is decoded.
func (s *survey) key(e *unstable.Node, into reflect.Type) (reflect.Type, error) {
	known := true
	var first, last unstable.Range
	for it, parts := e.Key(), 0; it.Next(); parts++ {
		n := it.Node()
		if parts == 0 {
			first = n.Raw
		}
		last = n.Raw
		if parts >= maxParts || len(s.words) >= maxDepth || len(n.Data) > maxLength {
			return nil, s.refuse(first, fmt.Sprintf("a key is too long or too deep: use at most %d parts of %d bytes each", maxParts, maxLength))
		}
		s.words, s.path = append(s.words, n.Data), append(append(s.path, 0), n.Data...)
		var ok bool
		if into, ok = s.fields.of(into, n.Data); !ok {
			known = false
		}
	}
	if !known && len(s.unknown) < maxWrong {
		line, column := s.lines.At(int(first.Offset))
		u := Unknown{Line: line, Column: column, Width: int(last.Offset + last.Length - first.Offset)}
		for _, w := range s.words {
			u.Key = append(u.Key, string(w))
		}
		s.unknown = append(s.unknown, u)
	}
	return into, nil
}

// count adds the cost of finding and storing a key of so many parts.
func (s *survey) count(e *unstable.Node, parts int) error {
	if _, ok := s.live[string(s.path)]; !ok {
		s.live[string(s.path)] = 0
		s.sum += parts // at most
	}
	return s.spend(e, parts*s.sum)
}

// value scans a value that is decoded into a type, and returns how many keys its tables have.
func (s *survey) value(n *unstable.Node, into reflect.Type) (keys int, err error) {
	switch n.Kind {
	case unstable.Array:
		below := element(into)
		for it := n.Children(); it.Next(); {
			more, err := s.value(it.Node(), below)
			if keys += more; err != nil {
				return keys, err
			}
		}
	case unstable.InlineTable:
		words, path := len(s.words), len(s.path)
		for it := n.Children(); it.Next(); {
			pair := it.Node()
			below, err := s.key(pair, into)
			if err != nil {
				return keys, err
			}
			more, err := s.value(pair.Value(), below)
			if keys += 1 + more; err != nil {
				return keys, err
			}
			s.words, s.path = s.words[:words], s.path[:path]
		}
	}
	return keys, nil
}

// spend adds n to the cost. Beyond maxCost it returns an error at the expression e.
func (s *survey) spend(e *unstable.Node, n int) error {
	if s.cost += n; s.cost <= maxCost {
		return nil
	}
	it := e.Key()
	it.Next()
	return s.refuse(it.Node().Raw, "the file has too many different keys to read in reasonable time")
}

func (s *survey) refuse(at unstable.Range, text string) error {
	line, _ := s.lines.At(int(at.Offset))
	return &LimitError{line, text}
}

// element returns the type of a list's elements; nil: t is not a list.
func element(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		return t.Elem()
	}
	return nil
}

// fields caches the field types of structs, by type and by name in lower case.
type fields map[reflect.Type]map[string]reflect.Type

// of returns the type into which a key of a value of type t is decoded; nil: any. It returns
// false if t is a struct without such a field.
func (f fields) of(t reflect.Type, key []byte) (reflect.Type, bool) {
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		t = t.Elem()
	}
	switch {
	case t == nil:
		return nil, true
	case t.Kind() == reflect.Map:
		return t.Elem(), true
	case t.Kind() != reflect.Struct:
		return nil, true // the type does not fit, as the decoder will report
	}
	known, ok := f[t]
	if !ok {
		known = map[string]reflect.Type{}
		for _, field := range reflect.VisibleFields(t) { // those of embedded structs, too
			name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
			if name == "" {
				name = field.Name
			}
			if field.IsExported() && !field.Anonymous && name != "-" {
				known[strings.ToLower(name)] = field.Type
			}
		}
		f[t] = known
	}
	if into, ok := known[string(key)]; ok {
		return into, true
	}
	into, ok := known[strings.ToLower(string(key))]
	return into, ok
}
