package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"rnnbench/record/files"
)

// Command is a Runner: it runs a scheduler's command on this machine.
func Command(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		if s := strings.TrimSpace(said.String()); s != "" {
			err = errors.New(strings.ReplaceAll(s, "\n", "; "))
		}
		return string(out), fmt.Errorf("%s refused: %w", name, err)
	}
	return string(out), nil
}

// WriteTexts writes the texts that a scheduler would get.
func WriteTexts(w io.Writer, texts []Text) error {
	for i, t := range texts {
		if len(texts) > 1 {
			sep := ""
			if i > 0 {
				sep = "\n"
			}
			if _, err := fmt.Fprintf(w, "%s# ---- %s ----\n", sep, t.Name); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(w, t.Content); err != nil {
			return err
		}
	}
	return nil
}

// CopyProgram copies this program to the path to, and the named one that lies beside it.
func CopyProgram(to, also string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	list := [][2]string{{self, to}}
	if beside := filepath.Join(filepath.Dir(self), also); there(beside) {
		list = append(list, [2]string{beside, filepath.Join(filepath.Dir(to), also)})
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	for _, x := range list {
		from, err := os.Open(x[0])
		if err != nil {
			return err
		}
		err = files.Write(x[1], func(w io.Writer) error { _, err := io.Copy(w, from); return err })
		if err = errors.Join(err, from.Close(), os.Chmod(x[1], 0o755)); err != nil {
			return err
		}
	}
	return nil
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
