package turns

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"rnnbench/record/files"
)

// Claim notes in a file what its folder's runs are made for. It refuses the folder of other runs. Interrupted
// runs go on only if they were made for the same.
func Claim(path string, what any) error {
	text, err := json.MarshalIndent(what, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	was, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return files.Replace(path, func(w io.Writer) error { _, err := w.Write(text); return err })
	case err != nil:
		return err
	case !json.Valid(was):
		return fmt.Errorf("%s is broken: remove the folder to begin anew", path)
	case !bytes.Equal(was, text):
		return fmt.Errorf("%s holds runs of something else: name another folder by --out, or remove it", filepath.Dir(path))
	}
	return nil
}
