package study

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"rnnbench/plots"
	"rnnbench/plots/table"
	"rnnbench/record/files"
)

// Save writes a report and its figures into dir, and tells of each file.
func (e Experiment) Save(r *Report, dir string, wrote func(path string)) error {
	var md bytes.Buffer
	fmt.Fprintf(&md, "# %s\n\n%s\n", e.Heading(r), e.Source)
	for _, t := range r.Tables {
		md.WriteString("\n")
		if err := t.Write(&md, "markdown", table.Options{}); err != nil {
			return err
		}
	}
	for _, s := range r.Findings {
		fmt.Fprintf(&md, "\n%s\n", s)
	}
	for _, x := range r.Figures {
		file := x.Name + ".svg"
		if err := plots.Save(filepath.Join(dir, file), x.Figure); err != nil {
			return err
		}
		fmt.Fprintf(&md, "\n![%s](%s)\n", x.Name, file)
		wrote(filepath.Join(dir, file))
	}
	for _, x := range r.Files {
		path := filepath.Join(dir, x.Name)
		if err := files.Write(path, func(w io.Writer) error { _, err := w.Write(x.Content); return err }); err != nil {
			return err
		}
		if filepath.Ext(path) == ".svg" {
			fmt.Fprintf(&md, "\n![%s](%s)\n", strings.TrimSuffix(x.Name, ".svg"), x.Name)
		}
		wrote(path)
	}
	path := filepath.Join(dir, "report.md")
	err := files.Write(path, func(w io.Writer) error { _, err := w.Write(md.Bytes()); return err })
	if err == nil {
		wrote(path)
	}
	return err
}
