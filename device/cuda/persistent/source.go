package persistent

import (
	"path"
	"strings"

	"rnnbench/device/cuda/codegen"
)

// room is the folder of this package in the repository.
const room = "device/cuda/persistent"

// source says where the kernel of v is: its file, and the function that the entry calls.
func (v *Variant) source() string { return sourceIn(v.entry, v.files) }

// stackSource is the same for a stack's kernel, whose file has the name of the kernel.
func stackSource(kernel string) string {
	return sourceIn("stack_layer", []string{strings.ReplaceAll(kernel, "-", "_")})
}

// sourceIn names the first of files that defines the function; "": none does.
func sourceIn(function string, files []string) string {
	for _, f := range files {
		if strings.Contains(codegen.Text(kernels, f+".cu"), " void "+function+"(") {
			return path.Join(room, f+".cu") + ", " + function
		}
	}
	return ""
}
