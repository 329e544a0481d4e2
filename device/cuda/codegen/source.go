// Package codegen writes a cell's program as CUDA C++, and puts together the texts
// of kernels.
package codegen

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
)

// A Source is the text of one kernel, without what all kernels begin with.
type Source struct{ Name, Text string }

// File is the kernel in a file of files, whose name ends in .cu, with words
// defined; it panics where there is none.
func File(files embed.FS, name string, defines ...any) Source {
	return Source{Name: name, Text: Defines(defines...) + Text(files, name+".cu")}
}

// Text is a file of files, without the sample of a configuration that it includes
// where it is opened by itself; it panics where there is none.
func Text(files embed.FS, name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return Body(string(text))
}

// Body is a kernel's file without its first and last lines, by which it includes a
// sample of what is put ahead of it and behind it.
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

// Constants spells integer constants, each a name and an int, as C++ declares several
// of one type. Choosing among configurations spells thousands.
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

// Defines defines words: each is followed by what it stands for.
func Defines(words ...any) string {
	var b strings.Builder
	for i := 0; i < len(words); i += 2 {
		fmt.Fprintf(&b, "#define %v %v\n", words[i], words[i+1])
	}
	return b.String()
}

//go:embed *.cu
var beginnings embed.FS

// Intrinsics is what begins every kernel on a GPU; the emulator has its own.
func Intrinsics() string { return File(beginnings, "intrinsics").Text }

// Common is what comes next in every kernel.
func Common() string { return File(beginnings, "common").Text }
