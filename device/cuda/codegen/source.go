// Package codegen writes a cell's program as CUDA C++, and assembles the texts of kernels.
package codegen

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
)

// A Source is the text of one kernel, without the beginning that all kernels share.
type Source struct{ Name, Text string }

// File returns the kernel in file name+".cu" of files, with defines ahead of it. It panics if there
// is no such file.
func File(files embed.FS, name string, defines ...any) Source {
	return Source{Name: name, Text: Defines(defines...) + Text(files, name+".cu")}
}

// Text returns a file of files without the lines that include its samples (see Body). It panics if
// there is no such file.
func Text(files embed.FS, name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return Body(string(text))
}

// Body returns a kernel's text without its first and last lines. They include samples of what Go
// puts ahead and behind, so that the file opens by itself.
func Body(text string) string {
	if !strings.HasPrefix(text, "#ifndef CONFIGURED") {
		return text
	}
	_, text, _ = strings.Cut(text, "#endif\n")
	if i := strings.LastIndex(text, "#ifdef SAMPLE_"); i >= 0 {
		text = text[:i]
	}
	return text
}

// Constants spells a C++ list "name = value, …" of pairs of a string and an int. Choosing among
// configurations spells thousands, so it avoids package fmt.
func Constants(pairs ...any) string {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, pairs[i].(string)...)
		b = append(b, " = "...)
		b = strconv.AppendInt(b, int64(pairs[i+1].(int)), 10)
	}
	return string(b)
}

// Defines spells #define lines for pairs of a word and its meaning.
func Defines(words ...any) string {
	var b strings.Builder
	for i := 0; i < len(words); i += 2 {
		fmt.Fprintf(&b, "#define %v %v\n", words[i], words[i+1])
	}
	return b.String()
}

//go:embed *.cu
var beginnings embed.FS

// Intrinsics is the beginning of every kernel on a GPU. The emulator has its own.
func Intrinsics() string { return File(beginnings, "intrinsics").Text }

// Common follows it in every kernel.
func Common() string { return File(beginnings, "common").Text }
