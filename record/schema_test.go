package record

import (
	"encoding/json"
	flags "flag"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/rnn/axis"
)

type jsonSchema struct {
	Description string
	Type        any
	Properties  map[string]*jsonSchema
	Required    []string
	Items       *jsonSchema
	Values      *jsonSchema `json:"additionalProperties"`
	Enum        []any
	Const       any
	Minimum     *float64
	Maximum     *float64
}

func (s *jsonSchema) types() []string {
	if list, ok := s.Type.([]any); ok {
		return []string{list[0].(string), list[1].(string)}
	}
	return []string{s.Type.(string)}
}

func parseSchema(t *testing.T) *jsonSchema {
	t.Helper()
	var s jsonSchema
	if err := json.Unmarshal([]byte(JSONSchema()), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// later lists keys that were added later, so that early records lack them.
var later = []string{"record.verify.method", "record.verify.states_steps", "record.verify.shorter_steps", "record.verify.share", "record.verify.peer", "record.verify.kinks", "record.verify.kinks.shown", "record.verify.iterations", "record.verify.residual", "[].group",
	"record.latency", "record.disturbance", "record.launch_s", "record.equations", "record.samples.clock_hz", "record.training.glorot", "record.training.replicas", "record.training.repeat", "record.training.stop", "record.training.beside", "record.training.convergence", "record.training.mean_loss", "record.training.mean_of", "record.training.held_out.label_errors", "record.mode.objective", "record.impl.choice.objective"}

// TestSchemaMatchesRecord: Record and the schema have the same fields, with the same types, and every
// field has a description.
func TestSchemaMatchesRecord(t *testing.T) {
	var match func(path string, typ reflect.Type, s *jsonSchema)
	match = func(path string, typ reflect.Type, s *jsonSchema) {
		if len(s.Description) < 3 && path != "[]" {
			t.Errorf("%s has no description", path)
		}
		want := []string{}
		optional := typ.Kind() == reflect.Pointer
		if optional {
			typ = typ.Elem()
		}
		switch {
		case typ == reflect.TypeFor[time.Time]():
			want = append(want, "string")
		case typ.Kind() == reflect.Struct:
			want = append(want, "object")
			names := []string{}
			for i := range typ.NumField() {
				if !typ.Field(i).IsExported() { // what is not written
					continue
				}
				name := typ.Field(i).Tag.Get("json")
				if name == "" || strings.Contains(name, ",") {
					t.Errorf("%s.%s: every key is always present, under a name of its own", path, typ.Field(i).Name)
				}
				names = append(names, name)
				if sub, ok := s.Properties[name]; ok {
					match(path+"."+name, typ.Field(i).Type, sub)
				} else {
					t.Errorf("%s.%s is not in the schema", path, name)
				}
			}
			for name := range s.Properties {
				if !slices.Contains(names, name) {
					t.Errorf("%s.%s is in the schema only", path, name)
				}
			}
			old := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(later, path+"."+name) })
			if typ == reflect.TypeFor[Point]() {
				old = slices.DeleteFunc(slices.Clone(names), func(name string) bool { a, _ := axis.Named(name); return !a.First })
			}
			if !slices.Equal(old, s.Required) {
				t.Errorf("%s requires %v, want %v", path, s.Required, old)
			}
		case typ.Kind() == reflect.Slice || typ.Kind() == reflect.Array:
			want = append(want, "array")
			match("[]", typ.Elem(), s.Items)
			optional = optional || path == "record.kernels" // a slice of its own is null where unknown
		case typ.Kind() == reflect.Map:
			want = append(want, "object")
			match("[]", typ.Elem(), s.Values)
		default:
			kinds := map[reflect.Kind]string{reflect.String: "string", reflect.Int: "integer", reflect.Int64: "integer",
				reflect.Uint64: "integer", reflect.Float64: "number", reflect.Bool: "boolean"}
			want = append(want, kinds[typ.Kind()])
		}
		if optional {
			want = append(want, "null")
		}
		if !slices.Equal(want, s.types()) {
			t.Errorf("%s has type %v in the schema, want %v", path, s.types(), want)
		}
	}
	match("record", reflect.TypeFor[Record](), parseSchema(t))
}

var update = flags.Bool("update", false, "add the axes that the schema lacks")

// TestSchemaOfAxes: the schema has the values of every axis. With -update it gets the axes that it lacks.
func TestSchemaOfAxes(t *testing.T) {
	have, text := parseSchema(t).Properties["point"].Properties, JSONSchema()
	for _, a := range axis.All() {
		want := &jsonSchema{Type: "string"}
		switch least := float64(a.Least); {
		case a.Sized():
			want.Type, want.Minimum = "integer", &least
		case a.Words == nil && a.Values() != nil:
			want.Type = "boolean"
		case !a.Open:
			for _, w := range a.Words {
				want.Enum = append(want.Enum, written(t, a, w))
			}
		}
		is := have[a.Name]
		if is == nil && *update {
			text = withAxis(t, text, a, want)
			continue
		}
		if is == nil || is.Type != want.Type || !reflect.DeepEqual(is.Minimum, want.Minimum) || !slices.Equal(is.Enum, want.Enum) {
			t.Errorf("%s is %+v in the schema, want %+v: -update adds axes that it lacks", a.Name, is, want)
		}
	}
	if text != JSONSchema() {
		if err := os.WriteFile("record.schema.json", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// written is how records write a word of an axis.
func written(t *testing.T, a axis.Axis, word string) (value any) {
	var p Point
	a.Set(&p, word)
	text, err := json.Marshal(a.Field(&p))
	if err != nil || json.Unmarshal(text, &value) != nil {
		t.Fatal(err)
	}
	return value
}

// withAxis adds an axis after the last one of a schema.
func withAxis(t *testing.T, text string, a axis.Axis, s *jsonSchema) string {
	value := map[string]any{"description": strings.ToUpper(a.Help[:1]) + a.Help[1:] + ".", "type": s.Type}
	if s.Minimum != nil {
		value["minimum"] = *s.Minimum
	}
	if s.Enum != nil {
		value["enum"] = s.Enum
	}
	lines, err := json.MarshalIndent(value, "        ", "  ")
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(text, "\n      },\n      \"required\"") // of the point, the first object in a record
	if !ok {
		t.Fatal("the schema has no point")
	}
	return fmt.Sprintf("%s,\n        %q: %s\n      },\n      \"required\"%s", before, a.Name, lines, after)
}

// validate implements as much of JSON Schema as the record's schema uses.
func validate(path string, v any, s *jsonSchema) error {
	kind := "null"
	switch v := v.(type) {
	case string:
		kind = "string"
	case bool:
		kind = "boolean"
	case []any:
		kind = "array"
		for i, item := range v {
			if err := validate(fmt.Sprintf("%s[%d]", path, i), item, s.Items); err != nil {
				return err
			}
		}
	case map[string]any:
		kind = "object"
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				return fmt.Errorf("%s.%s is missing", path, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			sub := s.Values
			if p, ok := s.Properties[name]; ok {
				sub = p
			}
			if sub != nil {
				if err := validate(path+"."+name, v[name], sub); err != nil {
					return err
				}
			}
		}
	case float64:
		kind = "number"
		if v == math.Trunc(v) && slices.Contains(s.types(), "integer") {
			kind = "integer"
		}
		if s.Minimum != nil && v < *s.Minimum || s.Maximum != nil && v > *s.Maximum {
			return fmt.Errorf("%s is %v: out of range", path, v)
		}
	}
	if !slices.Contains(s.types(), kind) {
		return fmt.Errorf("%s is of type %s", path, kind)
	}
	if s.Const != nil && v != s.Const || s.Enum != nil && !slices.Contains(s.Enum, v) {
		return fmt.Errorf("%s cannot be %v", path, v)
	}
	return nil
}

func TestRecordsFollowSchema(t *testing.T) {
	s := parseSchema(t)
	dir := t.TempDir()
	run, err := Create(dir, Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range []Record{sample(1), skipped(2)} {
		if err := run.Append(&rec); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		if err := validate("record", v, s); err != nil {
			t.Error(err)
		}
		delete(v.(map[string]any)["point"].(map[string]any), "hidden")
		if err := validate("record", v, s); err == nil {
			t.Error("a record without hidden size is valid")
		}
	}
	if err := run.Finish(0); err != nil {
		t.Fatal(err)
	}
}
