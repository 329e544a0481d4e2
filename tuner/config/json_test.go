package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestFromJSON reads back the configuration in a manifest, without the output folder.
func TestFromJSON(t *testing.T) {
	want := mustResolve(t, mustParse(t, full))
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	layer, err := FromJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Resolve(layer)
	if err != nil {
		t.Fatal(err)
	}
	if got.Dir == want.Dir {
		t.Errorf("the folder is %q again", got.Dir)
	}
	if got.Dir = want.Dir; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, text := range []string{"{", `[1]`} {
		if _, err := FromJSON([]byte(text)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
	if _, err := FromJSON([]byte(`{"nothing":{"hidden":8}}`)); err == nil || !strings.Contains(err.Error(), "the run's configuration") {
		t.Errorf("a key that is none: %v", err)
	}
}
