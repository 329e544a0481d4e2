// Package files writes files that other processes may be reading, and locks files that they may be
// writing.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Write replaces the file at path by what write writes. A reader sees the whole old or the whole new
// file. A symbolic link stays, and its target is replaced. Something other than a regular file, such
// as a pipe, is written to directly.
func Write(path string, write func(io.Writer) error) error {
	if err := put(path, write); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, blame(path, err))
	}
	return nil
}

// blame says why path cannot be written. It does not mention the temporary file, which users do not
// know.
func blame(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if dir := filepath.Dir(path); !there(dir) {
			return fmt.Errorf("there is no folder %s", dir)
		}
	}
	return Cause(err)
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Cause strips the file's name from an error, for messages that name the file themselves.
func Cause(err error) error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var causes []error
		for _, e := range several.Unwrap() {
			causes = append(causes, Cause(e))
		}
		return errors.Join(causes...)
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

func put(path string, write func(io.Writer) error) error {
	if special(path) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	path, err := Resolve(path)
	if err != nil {
		return err
	}
	return replace(path, write)
}

// Replace is Write, but it replaces the file at path itself, even a symbolic link or a pipe.
func Replace(path string, write func(io.Writer) error) error {
	if err := replace(path, write); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, blame(path, err))
	}
	return nil
}

// replace replaces the file at path. It removes what killed processes left of earlier tries.
func replace(path string, write func(io.Writer) error) error {
	clean(filepath.Dir(path), filepath.Base(path))
	f, err := createTemp(path)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = errors.Join(f.Chmod(0o644), f.Sync())
	}
	rename := func() {
		if err == nil {
			err = os.Rename(f.Name(), path)
		}
	}
	if runtime.GOOS != "windows" { // there, open files cannot be renamed
		rename() // while the file is locked, so that Clean leaves it alone
	}
	err = errors.Join(err, f.Close())
	if runtime.GOOS == "windows" {
		rename()
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Writable returns an error if path could not be written. It leaves path as it is.
func Writable(path string) error {
	if special(path) {
		return nil // opening a pipe would wait for its reader
	}
	to, err := Resolve(path)
	if err == nil {
		var f *os.File
		if f, err = createTemp(to); err == nil {
			if err = errors.Join(f.Close(), os.Remove(f.Name())); errors.Is(err, fs.ErrNotExist) {
				err = nil // Clean of another process was faster
			}
		}
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, blame(path, err))
	}
	return nil
}

// special reports whether path exists and is not a regular file.
func special(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

// Resolve follows the symbolic links of path, even to a file that does not exist yet.
func Resolve(path string) (string, error) {
	to, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return to, err
	}
	if to, err = os.Readlink(path); err != nil { // it is not a link, so nothing exists there
		return path, nil
	}
	if !filepath.IsAbs(to) {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		to = filepath.Join(dir, to)
	}
	return Resolve(to)
}
