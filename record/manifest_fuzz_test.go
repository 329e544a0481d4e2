package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// FuzzReadManifest: any manifest is read or refused, and what was read can be written.
func FuzzReadManifest(f *testing.F) {
	f.Add([]byte(`{"schema":"` + ManifestSchema + `","records":"` + Schema + `","run":"r","config":{"a":1},"devices":[{"key":"k"}]}`))
	f.Add([]byte(`{"schema":"` + ManifestSchema + `","records":"` + Schema + `","config":null,"counts":{"ok":1}}`))
	path := filepath.Join(f.TempDir(), manifestFile)
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		m, err := readManifest(path)
		if err != nil {
			return
		}
		if m.Config == nil {
			m.Config = json.RawMessage("null")
		}
		for i := range m.Devices {
			_ = OnGPU(m.Devices[i].Key)
		}
		if _, err := json.Marshal(m); err != nil {
			t.Errorf("it cannot be written: %v", err)
		}
	})
}
