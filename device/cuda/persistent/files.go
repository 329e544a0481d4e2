// Package persistent runs recurrent layers, and their gradients, as one kernel over all steps,
// whose blocks keep the recurrent weights on chip (Diamos et al. 2016). A Variant is a kernel. A
// Config says how it divides a layer. A Chooser picks the Config that is predicted to be the
// fastest.
package persistent

import (
	"embed"

	"rnnbench/device/cuda/codegen"
)

//go:embed *.cu *.cuh *.tpl
var kernels embed.FS

// file returns a kernel of this package with defines ahead of it.
func file(name string, defines ...any) codegen.Source {
	return codegen.File(kernels, name, defines...)
}

// configure spells the struct of a kernel's configuration from its fields, followed by the headers
// that explain them.
func configure(fields string, headers ...string) string {
	text := "struct Config { static constexpr int " + fields + "; };\n"
	for _, h := range headers {
		text += codegen.Text(kernels, h+".cuh")
	}
	return text
}

// GridBarrier returns the text of a barrier of all blocks of a grid.
func GridBarrier() string { return file("grid").Text }
