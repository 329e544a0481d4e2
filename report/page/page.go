// Package page has what all HTML pages of records share: style, script, and templates of tables, figures and
// chapters. The script sorts tables and shows values under the pointer; a page is complete without it.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"unicode"
)

var (
	//go:embed style.css
	style string
	//go:embed script.js
	script string
	//go:embed parts.html
	parts string
)

// Style is the style sheet of all pages.
func Style() template.CSS { return template.CSS(style) }

// Script is the script of all pages.
func Script() template.JS { return template.JS(script) }

// Alone is a content security policy: the page may run only Script, and load nothing.
func Alone() string {
	hash := sha256.Sum256([]byte(script))
	return "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'none'"
}

// Parse parses templates that may use those of this package: "sheet", "figures" and "chapter".
func Parse(texts map[string]string) (*template.Template, error) {
	t, err := template.New("parts").Parse(parts)
	for name, text := range texts {
		if err == nil {
			_, err = t.New(name).Parse(text)
		}
	}
	return t, err
}

// Write writes the page of the template with that name. Control characters, which a terminal might obey,
// become spaces: labels and commands may contain anything.
func Write(w io.Writer, t *template.Template, name string, data any) error {
	var text bytes.Buffer
	if err := t.ExecuteTemplate(&text, name, data); err != nil {
		return err
	}
	_, err := w.Write(bytes.Map(printed, text.Bytes()))
	return err
}

func printed(c rune) rune {
	if unicode.IsControl(c) && c != '\n' && c != '\t' {
		return ' '
	}
	return c
}
