package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// version returns the version of the module that this program was built from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}

func versionCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version [flags]",
		Short:   "Print the version and build information",
		GroupID: "manage",
		Example: `  rnnbench version
  rnnbench version -o json
  rnnbench --version`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	format := "text"
	addGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.VarP(choice{&format, "format", []string{"text", "json"}}, "format", "o", "how to print: text, json")
	})
	return p.verb(cmd, func(context.Context, *cobra.Command, []string) error {
		v := struct {
			Version  string `json:"version"`
			Revision string `json:"vcs_revision"`
			Time     string `json:"vcs_time"`
			Modified bool   `json:"vcs_modified"`
			Go       string `json:"go"`
			OS       string `json:"os"`
			Arch     string `json:"arch"`
		}{Version: version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, s := range info.Settings {
				switch s.Key {
				case "vcs.revision":
					v.Revision = s.Value
				case "vcs.time":
					v.Time = s.Value
				case "vcs.modified":
					v.Modified = s.Value == "true"
				}
			}
		}
		if format == "json" {
			return p.json(v)
		}
		_, err := fmt.Fprintf(p.out, "rnnbench %s\n%s %s/%s\n", v.Version, v.Go, v.OS, v.Arch)
		if err == nil && v.Revision != "" {
			changed := ""
			if v.Modified {
				changed = ", with uncommitted changes"
			}
			_, err = fmt.Fprintf(p.out, "revision %s of %s%s\n", v.Revision, v.Time, changed)
		}
		return err
	})
}

// json prints v as indented JSON.
func (p *program) json(v any) error {
	e := json.NewEncoder(p.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
