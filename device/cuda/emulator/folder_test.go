package emulator

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestOldImagesGo: images that nobody compiled for two weeks make room, and others stay.
func TestOldImagesGo(t *testing.T) {
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} { // which system reads which
		t.Setenv(name, t.TempDir())
	}
	at := folder()
	if err := os.MkdirAll(at, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, days := range map[string]int{"old": 15, "young": 13} {
		file := filepath.Join(at, name)
		when := time.Now().AddDate(0, 0, -days)
		if err := os.WriteFile(file, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if again := folder(); again != at {
		t.Errorf("the folder is %s, and then %s", at, again)
	}
	files, err := os.ReadDir(at)
	if err != nil || len(files) != 1 || files[0].Name() != "young" {
		t.Errorf("left are %v, %v", files, err)
	}
}
