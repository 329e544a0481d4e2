// Package scan runs linear recurrences over time, forward or backward, as one kernel
// that reads and writes memory once. Few channels over much time are a team's, whose
// blocks run together (team.go); else blocks draw tiles and look back for the state
// that each begins with (tiles.go).
package scan

import (
	"embed"

	"rnnbench/device/cuda/codegen"
)

//go:embed *.cu *.tpl
var kernels embed.FS

// file is a kernel of this package with words defined.
func file(name string, defines ...any) codegen.Source {
	return codegen.File(kernels, name, defines...)
}
