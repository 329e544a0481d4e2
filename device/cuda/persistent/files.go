// Package persistent runs recurrent layers, and their gradients, as one kernel
// over all steps, whose blocks keep the recurrent weights on chip (Diamos et al.
// 2016). A Variant is a kernel, a Config how it divides a layer, and a Chooser
// picks the Config that is expected to be the fastest.
package persistent

import (
	"embed"

	"rnnbench/device/cuda/codegen"
)

//go:embed *.cu *.cuh *.tpl
var kernels embed.FS

// file is a kernel of this package with words defined.
func file(name string, defines ...any) codegen.Source {
	return codegen.File(kernels, name, defines...)
}

// configure is the struct of a kernel's configuration, spelled as its fields, with the
// headers that say what these are.
func configure(fields string, headers ...string) string {
	text := "struct Config { static constexpr int " + fields + "; };\n"
	for _, h := range headers {
		text += codegen.Text(kernels, h+".cuh")
	}
	return text
}

// GridBarrier is the text of a barrier of all blocks of a grid.
func GridBarrier() string { return file("grid").Text }
