package cuda

import (
	"embed"

	"rnnbench/device/cuda/codegen"
)

//go:embed kernels
var files embed.FS

// file returns a kernel of kernels/ with defines ahead of it.
func file(name string, defines ...any) codegen.Source {
	s := codegen.File(files, "kernels/"+name, defines...)
	s.Name = name
	return s
}
