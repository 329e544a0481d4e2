package config_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"rnnbench/internal/tomlfile/hostile"
	"rnnbench/tuner/config"
)

// TestHostileFiles: any configuration of up to four megabytes is quickly read or refused.
func TestHostileFiles(t *testing.T) {
	const head = "version = 1\n"
	hostile.Try(t, head, func() map[string]string {
		return map[string]string{
			"unknown keys":     hostile.Repeat(head+"[measure]\n", func(i int) string { return fmt.Sprintf("x%d=1\n", i) }),
			"few unknown keys": hostile.Repeat(head, func(i int) string { return fmt.Sprintf("[[exclude]]\nx%d=1\n", i%9) }),
			"exclusions":       hostile.Repeat(head, func(i int) string { return fmt.Sprintf("[[exclude]]\nwhere='hidden<%d'\n", i) }),
			"zips":             hostile.Repeat(head, func(i int) string { return "[[zip]]\naxes=['hidden','batch']\nvalues=[[1,2]]\n" }),
			"rows":             hostile.Repeat(head+"[[zip]]\naxes=['hidden','batch']\nvalues=[", func(i int) string { return "[1,2]," }) + "]\n",
			"conditions":       hostile.Repeat(head+"where=[", func(i int) string { return "'hidden<1'," }) + "]\n",
			"one axis":         hostile.Repeat(head+"[axes]\nhidden=[", func(i int) string { return fmt.Sprint(i+1, ",") }) + "]\n",
			"ranges":           hostile.Repeat(head+"[axes]\nhidden='", func(i int) string { return "1:9," }) + "1'\n",
			"techniques":       hostile.Repeat(head+"[axes]\nimpl='", func(i int) string { return "a:b=1," }) + "a'\n",
			"points":           hostile.Repeat(head+"point=[", func(i int) string { return fmt.Sprintf("'H=%d',", i+1) }) + "]\n",
		}
	}, func(text []byte) error {
		l, err := config.Parse(text, "c.toml")
		if err == nil {
			_, err = config.Resolve(l)
		}
		return err
	})
}

// TestLongLabels: a label too long for tables is refused in one short sentence.
func TestLongLabels(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for name, value := range map[string]string{"label": long, "impl": long + "=naive"} {
		var l config.Layer
		if err := l.Set(name, value); err == nil || len(err.Error()) > 200 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}

// TestLabels: a label is refused if another meaning of the word would come first wherever it names the
// run. Manifests of early versions have such labels.
func TestLabels(t *testing.T) {
	for label, want := range map[string]string{
		"a/b": "", "a=b": "", "a b": "", "a,b": "", "日本": "", "latest-2": "", "a-b": "",
		"-x": `"-x" would be read as a flag`, "-": "would be read as a flag", ".": `"." is a folder or the latest run`, "..": "is a folder", "latest": "or the latest run",
	} {
		var l config.Layer
		if err := l.Set("label", label); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; want %q", label, err, want)
		}
		text, err := json.Marshal(map[string]any{"version": 1, "label": label})
		if err != nil {
			t.Fatal(err)
		}
		old, err := config.FromJSON(text)
		if err != nil {
			t.Fatalf("%s: %v", label, err)
		}
		if c, err := config.Resolve(old); err != nil || c.Label != label {
			t.Errorf("the label %q of a manifest became %q, %v", label, c.Label, err)
		}
	}
}
