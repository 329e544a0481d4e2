package site

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// mostName is the longest name of a page, without its ending. File systems take 255 bytes.
const mostName = 100

// A namer gives each page a name of its own.
type namer map[string]bool

// page is the address of the page of what text names, such as layer/lstm-forward-h512.html.
func (n namer) page(folder, text string) string {
	name := slug(text)
	if len(name) > mostName || n[folder+"/"+name] {
		name = fmt.Sprintf("%s-%.4x", name[:min(len(name), mostName)], sha256.Sum256([]byte(text)))
	}
	for n[folder+"/"+name] { // texts may be equal
		name += "-"
	}
	n[folder+"/"+name] = true
	return folder + "/" + name + ".html"
}

// slug turns a text into lower-case letters, digits and single dashes, as all file systems and addresses take.
func slug(text string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case c == '=': // as in h512
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	if s := strings.TrimSuffix(b.String(), "-"); s != "" {
		return s
	}
	return "unnamed"
}
