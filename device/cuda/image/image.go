// Package image keeps compiled kernels in a folder, for later runs and other processes.
package image

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
)

// Kept returns a compiler that keeps c's images in a folder. It is c if the folder is "". Several
// processes may share the folder.
func Kept(c driver.Compiler, folder string) driver.Compiler {
	if folder == "" {
		return c
	}
	return kept{c, folder}
}

type kept struct {
	driver.Compiler
	folder string
}

// Compile implements driver.Compiler. A file is an image after its SHA-256 sum, so that a damaged one
// is compiled again.
func (k kept) Compile(name, source string) ([]byte, error) {
	path := filepath.Join(k.folder, Key(k.Compiler, name, source))
	if file, err := os.ReadFile(path); err == nil && len(file) > sha256.Size {
		if sum := sha256.Sum256(file[sha256.Size:]); bytes.Equal(file[:sha256.Size], sum[:]) {
			return file[sha256.Size:], nil
		}
	}
	image, err := k.Compiler.Compile(name, source)
	if err == nil {
		sum := sha256.Sum256(image)
		keep(path, append(sum[:], image...))
	}
	return image, err
}

// Key identifies a kernel's image by compiler c and its file format, since other versions of this
// program use the same folder.
func Key(c driver.Compiler, name, source string) string {
	sum := sha256.New()
	for _, text := range []string{"behind its sum", c.Version(), name, codegen.Intrinsics(), source} {
		fmt.Fprintf(sum, "%d %s", len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:40]
}

// keep writes a file as a whole or not at all. Failing is no error: then the kernel is compiled
// again.
func keep(path string, data []byte) {
	if os.MkdirAll(filepath.Dir(path), 0o777) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new*")
	if err != nil {
		return
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}
