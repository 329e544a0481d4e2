// Package kernels has the CUDA kernels of persistent layers. It writes what goes ahead of a kernel,
// its configuration and its cell, and the entry behind it that calls its functions. It does not
// know how a layer is divided, nor what that costs: callers say which kernel, and its constants.
package kernels

import (
	"embed"
	"path"
	"strings"

	"rnnbench/device/cuda/codegen"
)

//go:embed *.cu *.cuh *.tpl
var files embed.FS

// folder is the folder of this package in the repository.
const folder = "device/cuda/persistent/kernels"

// file returns a kernel of this package with defines ahead of it.
func file(name string, defines ...any) codegen.Source {
	return codegen.File(files, name, defines...)
}

// configure spells the struct of a kernel's configuration from its fields, followed by the headers
// that explain them.
func configure(fields string, headers ...string) string {
	text := "struct Config { static constexpr int " + fields + "; };\n"
	for _, h := range headers {
		text += codegen.Text(files, h+".cuh")
	}
	return text
}

// GridBarrier returns the text of a barrier of all blocks of a grid.
func GridBarrier() string { return file("grid").Text }

// placeOf names the first of files that defines the function, and the function; "": none does.
func placeOf(function string, names []string) string {
	for _, f := range names {
		if strings.Contains(codegen.Text(files, f+".cu"), " void "+function+"(") {
			return path.Join(folder, f+".cu") + ", " + function
		}
	}
	return ""
}
