package site

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"rnnbench/record/files"
)

// listName is the file that lists the files of a site. It tells a site from other folders.
const listName = "files.txt"

// listHead is its first line.
const listHead = "# rnnbench site wrote these files, and may replace and remove them."

// A folder writes the files of a site. Whatever else lies in it stays.
type folder struct {
	root  *os.Root
	list  *os.File
	own   map[string]bool // files of this site or of an earlier one
	now   map[string]bool // files of this site
	pages int
	bytes int64
}

// Fits returns an error if dir is there and may not become the folder of a site. It changes nothing.
func Fits(dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("site: cannot write to %s: %w", dir, files.Cause(err))
	}
	f := &folder{root: root}
	if _, err = f.earlier(dir); err != nil {
		err = fmt.Errorf("site: %w", err)
	}
	return errors.Join(err, root.Close())
}

// openFolder opens a folder for a site. It refuses one that holds something else.
func openFolder(dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("cannot make the folder %s: %w", dir, files.Cause(err))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot write to %s: %w", dir, files.Cause(err))
	}
	f := &folder{root: root, own: map[string]bool{}, now: map[string]bool{}}
	if err := f.begin(dir); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return f, nil
}

// earlier reads the list of an earlier site; "": the folder is empty. Any other folder is an error.
func (f *folder) earlier(dir string) (list string, err error) {
	text, err := f.root.ReadFile(listName)
	list = string(text)
	switch head, _, _ := strings.Cut(list, "\n"); {
	case errors.Is(err, fs.ErrNotExist):
		entries, err := fs.ReadDir(f.root.FS(), ".")
		if err != nil {
			return "", fmt.Errorf("cannot read %s: %w", dir, files.Cause(err))
		}
		if len(entries) > 0 {
			return "", fmt.Errorf("the folder %s holds other files: name a new or empty folder, or one with an earlier site", dir)
		}
	case err != nil:
		return "", fmt.Errorf("cannot read %s of %s: %w", listName, dir, files.Cause(err))
	case head != listHead:
		return "", fmt.Errorf("the file %s of %s is not that of a site: name another folder", listName, dir)
	}
	return list, nil
}

// begin reads the list of an earlier site and opens it for more.
func (f *folder) begin(dir string) error {
	text, err := f.earlier(dir)
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(text, "\n")
	for name := range strings.Lines(rest) {
		f.own[strings.TrimSuffix(name, "\n")] = true
	}
	f.list, err = f.root.OpenFile(listName, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err == nil && len(text) == 0 {
		_, err = fmt.Fprintln(f.list, listHead)
	}
	if err != nil {
		return fmt.Errorf("cannot write to %s: %w", dir, files.Cause(err))
	}
	return nil
}

// write writes a file. It is in the list before it is there. A file with the same content stays as it is.
func (f *folder) write(name, text string) error {
	f.now[name] = true
	f.bytes += int64(len(text))
	if !f.own[name] {
		if _, err := f.root.Stat(name); err == nil {
			return fmt.Errorf("the file %s is not of a site: move it away", name)
		}
		if _, err := fmt.Fprintln(f.list, name); err != nil {
			return fmt.Errorf("cannot write %s: %w", listName, files.Cause(err))
		}
		f.own[name] = true
	}
	if old, err := f.root.ReadFile(name); err == nil && bytes.Equal(old, []byte(text)) {
		return nil
	}
	err := f.root.MkdirAll(path.Dir(name), 0o777)
	if err == nil {
		err = f.root.WriteFile(name, []byte(text), 0o666)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, files.Cause(err))
	}
	return nil
}

// close ends the writing. If the site is whole, it removes files of an earlier site that this one lacks.
func (f *folder) close(whole bool) (err error) {
	if whole {
		err = f.tidy()
	}
	return errors.Join(err, f.list.Close(), f.root.Close())
}

func (f *folder) tidy() error {
	for name := range f.own {
		if !f.now[name] {
			if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("cannot remove %s of an earlier site: %w", name, files.Cause(err))
			}
		}
	}
	text := listHead + "\n" + strings.Join(slices.Sorted(maps.Keys(f.now)), "\n") + "\n"
	if err := f.root.WriteFile(listName, []byte(text), 0o666); err != nil {
		return fmt.Errorf("cannot write %s: %w", listName, files.Cause(err))
	}
	return nil
}
