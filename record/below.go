package record

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Below lists the folders of runs at or below dir, in order of their paths. dir may be a link to a folder;
// links inside it are not followed.
func Below(dir string) ([]string, error) {
	var list []string
	at := dir
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		at += string(filepath.Separator) // what the link leads to
	}
	err := filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() && d.Name() == recordsFile {
			list = append(list, filepath.Dir(path))
		}
		return nil
	})
	slices.Sort(list)
	return list, err
}

// OfRun reports whether a file is one that a run is read from.
func OfRun(path string) bool {
	return slices.Contains([]string{recordsFile, manifestFile}, filepath.Base(path))
}
