package files

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
)

// temporary matches the names of files that will replace others: those of Write, and those of early
// versions. The first group, or else the second, is the name of the other file.
var temporary = regexp.MustCompile(`^(?:\.(.+)\.\d+|(.+)\.\d+-\d+)\.tmp$`)

// Clean removes the files in dir that processes left there when they were killed in Write. A process
// locks the file that it is writing, so one without a lock is nobody's. Where files have no locks,
// Clean removes nothing.
func Clean(dir string) { clean(dir, "") }

// clean is Clean for the files that were to replace base; "": for all.
func clean(dir, base string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		m := temporary.FindStringSubmatch(e.Name())
		if m == nil || !e.Type().IsRegular() || base != "" && m[1] != base && m[2] != base {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if f := abandoned(path); f != nil {
			_ = os.Remove(path) // a file that stays does no harm
			_ = f.Close()
		}
	}
}

// abandoned opens and locks a file that was locked by a process that has ended. It returns nil if the
// process may still have it.
func abandoned(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if TryLock(f) == nil && excludes(path) {
		return f
	}
	_ = f.Close()
	return nil
}

// excludes reports whether the file at path, which is locked, cannot be locked again: not every file
// system has locks.
func excludes(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(TryLock(f), ErrLocked)
}

// createTemp creates and locks the temporary file that will replace path.
func createTemp(path string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
		if err != nil {
			return nil, err
		}
		if err := TryLock(f); !errors.Is(err, ErrLocked) && current(f, f.Name()) {
			return f, nil // without a lock, if there are none
		}
		_ = f.Close() // Clean of another process was faster
	}
}

// owner is the file in a folder of Folder that its process locks.
const owner = "owner"

// Folder creates a folder for temporary files in dir. pattern is as in os.MkdirTemp. remove removes it. If
// the process is killed before, the next call with this pattern does.
func Folder(dir, pattern string) (path string, remove func() error, err error) {
	if old, err := filepath.Glob(filepath.Join(dir, pattern, owner)); err == nil {
		for _, name := range old {
			if f := abandoned(name); f != nil {
				_ = os.RemoveAll(filepath.Dir(name)) // a folder that stays does no harm
				_ = f.Close()
			}
		}
	}
	for {
		path, err := os.MkdirTemp(dir, pattern)
		if err != nil {
			return "", nil, err
		}
		name := filepath.Join(path, owner)
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return "", nil, errors.Join(err, os.RemoveAll(path))
		}
		if err := TryLock(f); !errors.Is(err, ErrLocked) && current(f, name) {
			return path, func() error {
				_ = f.Close() // open files cannot be removed everywhere
				return os.RemoveAll(path)
			}, nil
		}
		_ = f.Close() // another process took the folder for an abandoned one
	}
}
