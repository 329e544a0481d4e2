// Package site makes a web site of runs, as files that need no server: an index, and a page for each machine,
// experiment, layer, technique and run. Each measured number of a table leads to its record. What was computed of several, such as a
// ratio or a mean, leads to a page that has them.
//
// A layer is a problem without its streams. Its page has what all machines measured of it. Scripts sort tables
// and search layers by shape; without them the pages are complete. The same runs give the same bytes.
package site

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/report/page"
)

// Options says what a site shows.
type Options struct {
	Title string // "": a usual one

	// Idea is a technique's idea in one line; nil: none is known.
	Idea func(technique string) string
}

//go:embed site.html
var siteText string

// A site is what pages are made of.
type site struct {
	catalogue
	o     Options
	out   *folder
	pages *template.Template
}

// Written counts what was written.
type Written struct {
	Pages int
	Bytes int64
}

// Write writes the site of runs into the folder dir. The folder must be new or empty, or hold an earlier site,
// whose files are replaced.
func Write(dir string, sets []record.Set, o Options) (w Written, err error) {
	if len(sets) == 0 {
		return w, errors.New("site: no runs to show")
	}
	if o.Title == "" {
		o.Title = "rnnbench results"
	}
	s := &site{catalogue: newCatalogue(sets), o: o}
	if s.pages, err = page.Parse(map[string]string{"site": siteText}); err != nil {
		return w, fmt.Errorf("site: %w", err)
	}
	if s.out, err = openFolder(dir); err != nil {
		return w, fmt.Errorf("site: %w", err)
	}
	err = s.write()
	if closed := s.out.close(err == nil); err == nil {
		err = closed
	}
	if err != nil {
		return w, fmt.Errorf("site: %w", err)
	}
	return Written{s.out.pages, s.out.bytes}, nil
}

// write writes all files.
func (s *site) write() error {
	for _, step := range []func() error{s.assets, s.index, s.machinePages, s.experimentPages, s.groupPages, s.layerPages, s.techniquePages, s.runPages} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// A head is what all pages of a site begin with.
type head struct {
	Title string
	Root  string // from the page to the index's folder: "" or "../"
	Up    []crumb
}

// A crumb is a page above this one.
type crumb struct{ Title, Link string }

// under is the head of a page in a folder, with the pages above it.
func under(title string, up ...crumb) head {
	return head{Title: title, Root: "../", Up: up}
}

// put writes the page of a template.
func (s *site) put(address, name string, data any) error {
	var b strings.Builder
	if err := page.Write(&b, s.pages, name, data); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	s.out.pages++
	return s.out.write(address, b.String())
}

// assets writes the files that all pages share.
func (s *site) assets() error {
	shapes, err := s.shapes()
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"style.css": string(page.Style()), "script.js": string(page.Script()), "search.js": search, "layers.js": shapes} {
		if err := s.out.write(name, text); err != nil {
			return err
		}
	}
	return nil
}

// count is a number with its noun.
func count(n int, noun string) string { return quantity.Plural(n, noun) }
