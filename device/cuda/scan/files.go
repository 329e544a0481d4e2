// Package scan runs a linear recurrence over time, forward or backward, as one kernel that reads
// and writes memory once. Few channels over many steps run on a team of blocks that run at the same
// time (team.go). Otherwise blocks draw tiles and look back for the state before each tile
// (tiles.go).
package scan

import (
	"embed"

	"rnnbench/device/cuda/codegen"
)

//go:embed *.cu *.tpl
var kernels embed.FS

// file returns a kernel of this package with defines ahead of it.
func file(name string, defines ...any) codegen.Source {
	return codegen.File(kernels, name, defines...)
}
