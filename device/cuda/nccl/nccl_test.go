package nccl

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// place makes a file that is no library where a Python environment would have NCCL.
func place(t *testing.T, root string) string {
	dir := filepath.Join(root, "lib", "python3.12", "site-packages", "nvidia", "nccl", "lib")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPackages: the folder of a Python environment is found, the active environment's first.
func TestPackages(t *testing.T) {
	active, home := t.TempDir(), t.TempDir()
	first, last := place(t, active), place(t, filepath.Join(home, ".local"))
	dirs := packages(func(v string) string { return map[string]string{"VIRTUAL_ENV": active, "HOME": home}[v] })
	if i, j := slices.Index(dirs, first), slices.Index(dirs, last); i != 0 || j <= i {
		t.Errorf("%s and %s are at %d and %d of %q", first, last, i, j, dirs)
	}
}

// TestMissing: one sentence says that the library is absent or invalid.
func TestMissing(t *testing.T) {
	dir := filepath.Dir(filepath.Join(place(t, t.TempDir()), name))
	handle, path, err := Open(dir, t.TempDir())
	if err == nil {
		t.Skipf("this machine has NCCL: %s (%#x)", path, handle)
	}
	if s := err.Error(); strings.Contains(s, "\n") || !strings.HasPrefix(s, "NCCL is unavailable: libnccl.so.2 was not found: install it") {
		t.Errorf("%v", err)
	}
}
