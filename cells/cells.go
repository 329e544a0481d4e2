// Package cells has published cells that are not built in, as files of equations.
package cells

import (
	"embed"
	"fmt"
	"strings"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
)

//go:embed *.cell
var files embed.FS

// Names lists the cells.
func Names() []string {
	entries, _ := files.ReadDir(".") // it is embedded
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), equations.Extension))
	}
	return names
}

// Load registers the cell of the file of that name, without its ending, with package cell.
func Load(name string) (*cell.Cell, error) {
	text, err := files.ReadFile(name + equations.Extension)
	if err != nil {
		return nil, fmt.Errorf("cells: there is no file of equations for %s", name)
	}
	return equations.Read(name, string(text))
}
