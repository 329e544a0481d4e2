package config

import (
	"bytes"
	"encoding/json"

	"github.com/pelletier/go-toml/v2"
)

// FromJSON reads the configuration in a manifest, without its output folder. It takes any label, since
// runs of early versions have labels that are refused now.
func FromJSON(data json.RawMessage) (Layer, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var tree map[string]any
	if err := d.Decode(&tree); err != nil {
		return Layer{}, err
	}
	delete(tree, "output") // the run may have moved
	label, _ := tree["label"].(string)
	delete(tree, "label")
	text, err := toml.Marshal(plain(tree))
	if err != nil {
		return Layer{}, err
	}
	l, err := Parse(text, "the run's configuration")
	if err != nil || label == "" {
		return l, err
	}
	if l.values == nil {
		l.values = map[string][]string{}
	}
	l.values["label"] = []string{label}
	return l, nil
}

// plain converts JSON's numbers to TOML's.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		return v.String()
	}
	return v
}
