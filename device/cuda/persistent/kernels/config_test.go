package kernels_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	configStruct = regexp.MustCompile(`struct Config \{ static constexpr int (.*); \};`)
	headerLine   = regexp.MustCompile(`(?m)^#include "\.\./(\w+\.cuh)"$`)
	headerField  = regexp.MustCompile(`(?m)^constexpr int (\w+) += Config::(\w+); +// \S`)
)

// TestConfigFields: the headers of a kernel document exactly the fields of the configuration that
// Go prints.
func TestConfigFields(t *testing.T) {
	samples, err := filepath.Glob("sample/*.cuh")
	if err != nil {
		t.Fatal(err)
	}
	configured := 0
	for _, path := range samples {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := configStruct.FindStringSubmatch(string(data))
		if m == nil {
			continue
		}
		configured++
		var printed, documented []string
		for field := range strings.SplitSeq(m[1], ", ") {
			printed = append(printed, strings.Fields(field)[0])
		}
		for _, include := range headerLine.FindAllStringSubmatch(string(data), -1) {
			header, err := os.ReadFile(include[1])
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range headerField.FindAllStringSubmatch(string(header), -1) {
				if f[1] != f[2] {
					t.Errorf("%s: %s is Config::%s", include[1], f[1], f[2])
				}
				documented = append(documented, f[1])
			}
			if lines := strings.Count(string(header), "Config::"); lines != len(headerField.FindAllString(string(header), -1)) {
				t.Errorf("%s: a field has no comment", include[1])
			}
		}
		slices.Sort(printed)
		slices.Sort(documented)
		if !slices.Equal(printed, documented) {
			t.Errorf("%s: Go prints %v, and the headers document %v", path, printed, documented)
		}
	}
	if configured < 10 {
		t.Errorf("%d samples have a configuration", configured)
	}
}
