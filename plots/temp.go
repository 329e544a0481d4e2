package plots

import (
	"fmt"
	"os"
	"runtime"
	"sync"
)

var temp sync.Mutex

// withTemp runs f, which needs a writable folder for temporary files: the PDF writer does, for
// fonts. If the default folder is not writable, withTemp sets TMPDIR to another one while f runs.
func withTemp(f func() error) error {
	temp.Lock()
	defer temp.Unlock()
	first := writable("")
	if first == nil {
		return f()
	}
	variable := "TMPDIR"
	if runtime.GOOS == "windows" {
		variable = "TMP"
	}
	old, was := os.LookupEnv(variable)
	defer func() {
		if was {
			_ = os.Setenv(variable, old)
		} else {
			_ = os.Unsetenv(variable)
		}
	}()
	cache, _ := os.UserCacheDir()
	here, _ := os.Getwd()
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", cache, here} {
		if dir != "" && writable(dir) == nil && os.Setenv(variable, dir) == nil {
			return f()
		}
	}
	return fmt.Errorf("no folder for temporary files is writable: %w", first)
}

// writable returns an error if no folder can be created in dir; "": the default folder.
func writable(dir string) error {
	made, err := os.MkdirTemp(dir, "rnnbench-")
	if err != nil {
		return err
	}
	return os.Remove(made)
}
