// Package codegen writes a cell's program as CUDA C++, and puts together the texts
// of kernels.
package codegen

import (
	"embed"
	"fmt"
	"strings"
)

// A Source is the text of one kernel, without what all kernels begin with.
type Source struct{ Name, Text string }

// File is the kernel in a file of files, whose name ends in .cu, with words
// defined; it panics where there is none.
func File(files embed.FS, name string, defines ...any) Source {
	text, err := files.ReadFile(name + ".cu")
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	for i := 0; i < len(defines); i += 2 {
		fmt.Fprintf(&b, "#define %v %v\n", defines[i], defines[i+1])
	}
	b.Write(text)
	return Source{Name: name, Text: b.String()}
}

//go:embed *.cu
var beginnings embed.FS

// Intrinsics and Common begin every kernel; another machine than a GPU has other
// intrinsics.
func Intrinsics() string { return File(beginnings, "intrinsics").Text }
func Common() string     { return File(beginnings, "common").Text }
