package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"rnnbench/internal/tomlfile"
	"rnnbench/tuner/grid"
)

// document is the file. It keeps the values of TOML, and Layer.Set reads them, so a file and a flag
// mean the same.
type document struct {
	Version any       `toml:"version" json:"version"`
	Label   any       `toml:"label,omitempty" json:"label,omitempty"`
	Preset  any       `toml:"preset,omitempty" json:"preset,omitempty"`
	Device  any       `toml:"device,omitempty" json:"device,omitempty"`
	Point   any       `toml:"point,omitempty" json:"point,omitempty"`
	Model   any       `toml:"model,omitempty" json:"model,omitempty"`
	Layer   any       `toml:"layer,omitempty" json:"layer,omitempty"`
	Where   any       `toml:"where,omitempty" json:"where,omitempty"`
	Axes    table     `toml:"axes,omitempty" json:"axes,omitempty"`
	Measure table     `toml:"measure,omitempty" json:"measure,omitempty"`
	Output  table     `toml:"output,omitempty" json:"output,omitempty"`
	Zip     []zip     `toml:"zip,omitempty" json:"zip,omitempty"`
	Exclude []exclude `toml:"exclude,omitempty" json:"exclude,omitempty"`
	Rival   []rival   `toml:"rival,omitempty" json:"rival,omitempty"`
}

// A table is a table of settings, checked against Keys.
type table map[string]any

type zip struct {
	Axes   any     `toml:"axes" json:"axes"`
	Values [][]any `toml:"values,omitempty" json:"values,omitempty"`
}

type exclude struct {
	Where any `toml:"where" json:"where"`
}

// ReadFile reads a configuration file.
func ReadFile(path string) (Layer, error) {
	data, err := tomlfile.ReadFile(path)
	if err != nil {
		return Layer{}, fmt.Errorf("config: %w", err)
	}
	return Parse(data, path)
}

// Parse reads the text of a configuration file; name is for messages. The error lists every mistake
// with its line.
func Parse(data []byte, name string) (Layer, error) {
	var l Layer
	s := source{name: name, data: data}
	var d document
	if err := tomlfile.Decode(data, &d); err != nil {
		return l, s.explain(err)
	}
	s.locate()
	version, ok := d.Version.(int64)
	if !ok {
		s.report("version", errors.New("it is missing or not a number: write version = 1 at the top"))
	} else if version != Version {
		s.report("version", fmt.Errorf("%d is not supported: write version = %d", version, Version))
	}
	set := func(path, name string, v any) {
		if v == nil {
			return
		}
		values, err := texts(v)
		if err == nil {
			err = l.Set(name, values...)
		}
		if err != nil {
			s.report(path, err)
		}
	}
	set("label", "label", d.Label)
	set("preset", "preset", d.Preset)
	set("device", "device", d.Device)
	set("point", "point", d.Point)
	set("model", "model", d.Model)
	set("layer", "layer", d.Layer)
	set("where", "where", d.Where)
	for _, t := range []struct {
		name   string
		values table
	}{{"axes", d.Axes}, {"measure", d.Measure}, {"output", d.Output}} {
		for _, k := range Keys() {
			if k.Table == t.name {
				last := strings.TrimPrefix(k.Path(), t.name+".")
				set(k.Path(), k.Name, t.values[last])
				delete(t.values, last)
			}
		}
		for key := range t.values {
			s.reportUnknown(t.name + "." + key)
		}
	}
	for i, z := range d.Zip {
		path := fmt.Sprintf("zip[%d]", i)
		parsed, err := z.parse()
		if err != nil {
			s.report(path, err)
		}
		l.zips = append(l.zips, parsed)
	}
	for i, e := range d.Exclude {
		path := fmt.Sprintf("exclude[%d].where", i)
		rule, err := texts(e.Where)
		for _, text := range rule {
			if _, bad := grid.ParseCondition(text); bad != nil {
				err = bad
			}
		}
		if err != nil {
			s.report(path, err)
		}
		l.exclude = append(l.exclude, rule)
	}
	l.addRivals(d.Rival, &s)
	return l, s.verdict()
}

// parse reads a zip of a file.
func (z zip) parse() (grid.Zip, error) {
	axes, err := texts(z.Axes)
	if err != nil {
		return grid.Zip{}, err
	}
	parsed, err := grid.ParseZip(strings.Join(axes, ","))
	if err != nil {
		return grid.Zip{}, err
	}
	for _, values := range z.Values {
		if len(values) != len(parsed.Axes) {
			return grid.Zip{}, fmt.Errorf("a row has %d values: write one for each of the %d axes", len(values), len(parsed.Axes))
		}
		row, err := texts(values)
		if err != nil {
			return grid.Zip{}, err
		}
		for i, text := range row {
			if err := grid.CheckAxis(parsed.Axes[i], text); err != nil {
				return grid.Zip{}, fmt.Errorf("%s: %w", parsed.Axes[i], err)
			}
		}
		parsed.Rows = append(parsed.Rows, row)
	}
	return parsed, nil
}

// texts converts a value or a list of values to the texts that a flag would have.
func texts(v any) ([]string, error) {
	switch v := v.(type) {
	case string:
		return []string{v}, nil
	case int64:
		return []string{strconv.FormatInt(v, 10)}, nil
	case float64:
		return []string{strconv.FormatFloat(v, 'g', -1, 64)}, nil
	case bool:
		return []string{strconv.FormatBool(v)}, nil
	case []any:
		list := []string{}
		for _, item := range v {
			if _, nested := item.([]any); nested {
				return nil, errors.New("it is a list of lists: write a list")
			}
			one, err := texts(item)
			if err != nil {
				return nil, err
			}
			list = append(list, one...)
		}
		if len(list) == 0 {
			return nil, errors.New("the list is empty: write a value, or remove the setting")
		}
		return list, nil
	case nil:
		return nil, errors.New("it is missing")
	}
	return nil, errors.New("wrong type: write a string, a number or a list of them")
}

// A source is the text of a file and the mistakes in it.
type source struct {
	name  string
	data  []byte
	at    map[string]place // of keys by path
	wrong []mistake
}

type place struct{ line, column, width int }

type mistake struct {
	place
	text string
}

// locate finds the place of each key in the text.
func (s *source) locate() {
	s.at = map[string]place{}
	lines := tomlfile.NewLines(s.data)
	count := map[string]int{}
	prefix := ""
	var p unstable.Parser
	p.Reset(s.data)
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable && e.Kind != unstable.KeyValue {
			continue
		}
		var words []string
		var first, last unstable.Range
		for it := e.Key(); it.Next(); {
			if words == nil {
				first = it.Node().Raw
			}
			last = it.Node().Raw
			words = append(words, string(it.Node().Data))
		}
		path := strings.Join(words, ".")
		switch e.Kind {
		case unstable.Table:
			prefix = path + "."
		case unstable.ArrayTable:
			path = fmt.Sprintf("%s[%d]", path, count[path])
			count[strings.Join(words, ".")]++
			prefix = path + "."
		default:
			path = prefix + path
		}
		line, column := lines.At(int(first.Offset))
		s.at[path] = place{line, column, int(last.Offset + last.Length - first.Offset)}
	}
}

// report adds a mistake at the key of path.
func (s *source) report(path string, err error) {
	where, ok := s.at[path]
	for at := path; !ok && strings.Contains(at, "."); {
		at = at[:strings.LastIndexByte(at, '.')]
		where, ok = s.at[at]
	}
	if !ok {
		where = place{1, 1, 0}
	}
	s.wrong = append(s.wrong, mistake{where, path + ": " + err.Error()})
}

// reportUnknown adds a mistake for an unknown key.
func (s *source) reportUnknown(path string) { s.report(path, errors.New(unknownKey(path))) }

// unknownKey is the message for an unknown key. It suggests the key that was probably meant.
func unknownKey(path string) string {
	tableOf, last := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		tableOf, last = path[:i], path[i+1:]
	}
	top := []string{"version", "label", "preset", "device", "point", "where", "axes", "measure", "output", "zip", "exclude", "rival"}
	here, elsewhere := []string{}, []string{}
	if tableOf == "" {
		here = top
	}
	for _, k := range Keys() {
		name := k.Path()[strings.LastIndexByte(k.Path(), '.')+1:]
		switch {
		case k.Name == "zip": // a table of its own in a file
		case k.Table == tableOf:
			here = append(here, name)
		case name == last && k.Table != "":
			elsewhere = append(elsewhere, k.Path())
		}
	}
	if slices.Contains(top, last) && tableOf != "" {
		elsewhere = append(elsewhere, last+" (above the first table)")
	}
	if len(elsewhere) > 0 {
		return "unknown key here: did you mean " + elsewhere[0] + "?"
	}
	if near := grid.Nearest(last, here); near != "" {
		return "unknown key: did you mean " + near + "?"
	}
	return "unknown key"
}

// explain turns an error of the decoder into one with its place in the file.
func (s *source) explain(err error) error {
	var missing tomlfile.UnknownError
	var wrong *toml.DecodeError
	switch {
	case errors.As(err, &missing):
		for _, e := range missing {
			path := strings.Join(e.Key, ".")
			s.wrong = append(s.wrong, mistake{place{e.Line, e.Column, len(e.Key[len(e.Key)-1])}, path + ": " + unknownKey(path)})
		}
	case errors.As(err, &wrong):
		line, column := wrong.Position()
		text := strings.TrimPrefix(wrong.Error(), "toml: ")
		text, _, _ = strings.Cut(text, " into ") // the rest names Go types
		if key := strings.Join(wrong.Key(), "."); key != "" && !strings.HasSuffix(text, " is already defined") {
			text = key + ": wrong type: " + text
		}
		s.wrong = append(s.wrong, mistake{place{line, column, 1}, text})
	default:
		return fmt.Errorf("config: %s: %w", s.name, err)
	}
	return s.verdict()
}

// Limits of a report on a file's mistakes.
const (
	mostWrong   = 20
	longestText = 400 // bytes of a mistake or of a line
)

// verdict returns the mistakes in the order of the text, each with its line.
func (s *source) verdict() error {
	if len(s.wrong) == 0 {
		return nil
	}
	slices.SortStableFunc(s.wrong, func(a, b mistake) int {
		if a.line != b.line {
			return a.line - b.line
		}
		return a.column - b.column
	})
	lines := strings.Split(string(s.data), "\n")
	var b strings.Builder
	for i, m := range s.wrong {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == mostWrong {
			fmt.Fprintf(&b, "%s: and %d more mistakes", s.name, len(s.wrong)-i)
			break
		}
		if len(m.text) > longestText {
			m.text = strings.ToValidUTF8(m.text[:longestText], "") + " …"
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s", s.name, m.line, m.column, m.text)
		if m.width == 0 || m.line < 1 || m.line > len(lines) {
			continue
		}
		line := strings.TrimRight(lines[m.line-1], "\r")
		if len(line) > longestText {
			continue
		}
		start := min(max(m.column-1, 0), len(line))
		indent := strings.Map(func(r rune) rune { // keep tabs, so that the marks stand below the key
			if r == '\t' {
				return r
			}
			return ' '
		}, line[:start])
		width := max(1, min(m.width, len(line)-start))
		fmt.Fprintf(&b, "\n    %s\n    %s%s", line, indent, "^"+strings.Repeat("~", width-1))
	}
	return errors.New(b.String())
}

// document converts c to the form of the file.
func (c Config) document() document {
	d := document{Version: Version, Axes: table{}, Measure: table{}, Output: table{"dir": c.Dir}}
	if c.Label != "" {
		d.Label = c.Label
	}
	list := func(values []string) any {
		if len(values) == 0 {
			return nil
		}
		return values
	}
	d.Preset, d.Device, d.Point, d.Where = list(c.Grid.Presets), list(c.Devices), list(c.Grid.Points), list(c.Grid.Where)
	d.Model, d.Layer = list(c.Grid.Models), list(c.Grid.Layers)
	for name, text := range c.Grid.Axes {
		d.Axes[name] = text
	}
	if len(c.Grid.Impl) > 0 {
		d.Axes["impl"] = c.Grid.Impl
	}
	if len(c.Grid.SkipImpl) > 0 {
		d.Axes["skip_impl"] = c.Grid.SkipImpl
	}
	for _, k := range Keys() {
		if k.Table == "measure" {
			d.Measure[strings.ReplaceAll(k.Name, "-", "_")] = c.Measure.value(k.Name)
		}
	}
	for _, z := range c.Grid.Zips {
		out := zip{Axes: z.Axes}
		for _, row := range z.Rows {
			values := make([]any, len(row))
			for i, text := range row {
				values[i] = text
			}
			out.Values = append(out.Values, values)
		}
		d.Zip = append(d.Zip, out)
	}
	for _, rule := range c.Grid.Exclude {
		d.Exclude = append(d.Exclude, exclude{rule})
	}
	d.Rival = documents(c.Rivals)
	return d
}

// Print writes c as a file that reads back as c.
func Print(w io.Writer, c Config) error {
	if err := toml.NewEncoder(w).Encode(c.document()); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	return nil
}

// MarshalJSON writes c with the names of the file, as manifests keep it.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.document()) }
