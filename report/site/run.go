package site

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"reflect"
	"strconv"
	"strings"

	"rnnbench/internal/safe"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/report"
	"rnnbench/report/page"
)

// mostRecords is how many records a page has at most.
const mostRecords = 100

// A part is the records of a run that are on one page.
type part struct {
	page    string
	recs    []record.Record
	anchors []string
}

// divide divides a run into pages, and says where each of its records is.
func (c *catalogue) divide(r *run) {
	name := cmp.Or(r.Manifest.Run, r.Label)
	r.page = c.names.page("run", name)
	r.parts = []part{{page: r.page}}
	taken := map[string]bool{}
	for i := range r.Records {
		last := &r.parts[len(r.parts)-1]
		if len(last.recs) == mostRecords {
			r.parts = append(r.parts, part{page: c.names.page("run", fmt.Sprintf("%s %d", name, len(r.parts)+1))})
			last = &r.parts[len(r.parts)-1]
		}
		anchor := fmt.Sprintf("r%d", r.Records[i].Seq)
		for taken[anchor] { // where files of several runs were joined
			anchor += "x"
		}
		taken[anchor] = true
		last.recs, last.anchors = append(last.recs, r.Records[i]), append(last.anchors, anchor)
		if key := idOf(&r.Records[i]); c.at[key] == "" {
			c.at[key] = last.page + "#" + anchor
		}
	}
}

// A runPage is a page of a run.
type runPage struct {
	head
	Facts    *page.Sheet // on the first page alone
	Of       *crumb      // its experiment
	Commands []report.Command
	Parts    []crumb // of a run with several pages; no link: this page
	Records  *page.Sheet
	Shared   template.HTML // what all records of the page have in common
	JSON     []entry
}

// An entry is a record as JSON.
type entry struct {
	ID, Title, Layer string
	Text             template.HTML
}

func (s *site) runPages() error {
	for _, r := range s.runs {
		for i := range r.parts {
			if err := s.runPage(r, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// runPage writes a page of a run.
func (s *site) runPage(r *run, i int) error {
	p := &r.parts[i]
	title := fmt.Sprintf("%s, run %s", r.title, r.Manifest.Run)
	d := runPage{head: under(title, crumb{r.machine.title(), "../" + r.machine.page})}
	if i == 0 {
		d.Facts, d.Commands = page.NewSheet(report.Facts([]record.Set{r.Set}), nil), report.Commands([]record.Set{r.Set})
	} else {
		d.Title = fmt.Sprintf("%s, page %d", title, i+1)
	}
	if r.of != nil {
		d.Of = &crumb{r.of.Title, "../" + r.of.page + "#" + slug(r.machine.key)}
	}
	for k := range r.parts {
		if n := k*mostRecords + 1; len(r.parts) > 1 {
			c := crumb{Title: fmt.Sprintf("%d–%d", n, n+len(r.parts[k].recs)-1)}
			if k != i {
				c.Link = "../" + r.parts[k].page
			}
			d.Parts = append(d.Parts, c)
		}
	}
	if len(p.recs) > 0 {
		t, err := table.Records(p.recs, "naive")
		if err != nil {
			return err
		}
		here := map[id]string{} // the address may be that of a copy of the run
		for i := range p.recs {
			here[idOf(&p.recs[i])] = "#" + p.anchors[i]
		}
		d.Records = page.NewSheet(t, func(r *record.Record) string { return here[idOf(r)] })
		if err := s.entries(&d, p); err != nil {
			return err
		}
	}
	return s.put(p.page, "run", d)
}

// entries adds the records of p as JSON.
func (s *site) entries(d *runPage, p *part) error {
	trees := make([]map[string]any, len(p.recs))
	for i := range p.recs {
		var err error
		if trees[i], err = tree(&p.recs[i]); err != nil {
			return err
		}
	}
	shared := trees[0]
	for _, t := range trees[1:] {
		shared = common(shared, t)
	}
	if len(trees) > 1 && len(shared) > 0 { // they have the schema in common at least
		d.Shared = spelled(shared)
	}
	for i := range trees {
		t := trees[i]
		if len(trees) > 1 {
			t = without(t, shared)
		}
		r := &p.recs[i]
		d.JSON = append(d.JSON, entry{p.anchors[i], quantity.Label(r) + " at " + quantity.OneLine(r.Point.String()), "../" + s.pageOf[r.Point.Timed().Place()], spelled(t)})
	}
	return nil
}

// tree is r as JSON without what is zero or empty, and with measured numbers in five digits.
func tree(r *record.Record) (map[string]any, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var t map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&t); err != nil {
		return nil, err
	}
	t, _ = pruned(t).(map[string]any)
	return t, nil
}

// pruned removes what is zero or empty from objects; nil: nothing is left.
func pruned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, sub := range v {
			if sub = pruned(sub); sub == nil {
				delete(v, k)
			} else {
				v[k] = sub
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			if list, ok := v[i].(map[string]any); ok {
				v[i] = pruned(list)
			} else if n, ok := v[i].(json.Number); ok {
				v[i] = rounded(n)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	case json.Number:
		if v == "0" {
			return nil
		}
		return rounded(v)
	}
	return v
}

// rounded cuts the digits of a number that is not whole.
func rounded(n json.Number) json.Number {
	if !strings.ContainsAny(string(n), ".e") {
		return n
	}
	f, err := n.Float64()
	if err != nil {
		return n
	}
	return json.Number(strconv.FormatFloat(f, 'g', 5, 64))
}

// common is what a and b have in common.
func common(a, b map[string]any) map[string]any {
	both := map[string]any{}
	for k, x := range a {
		y, ok := b[k]
		if !ok {
			continue
		}
		inner, isMap := x.(map[string]any)
		other, isToo := y.(map[string]any)
		switch {
		case isMap && isToo:
			if c := common(inner, other); len(c) > 0 {
				both[k] = c
			}
		case reflect.DeepEqual(x, y):
			both[k] = x
		}
	}
	return both
}

// without is t without what is in shared.
func without(t, shared map[string]any) map[string]any {
	rest := map[string]any{}
	for k, x := range t {
		have, ok := shared[k]
		inner, isMap := x.(map[string]any)
		switch {
		case !ok:
			rest[k] = x
		case isMap:
			if r := without(inner, have.(map[string]any)); len(r) > 0 {
				rest[k] = r
			}
		}
	}
	return rest
}

// spelled writes what is left of a record, with a line for each of its keys.
func spelled(t map[string]any) template.HTML {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	kind := reflect.TypeFor[record.Record]()
	for i := range kind.NumField() {
		key := kind.Field(i).Tag.Get("json")
		v, ok := t[key]
		if !ok {
			continue
		}
		if b.Len() == 0 {
			b.WriteByte('{')
		} else {
			b.Truncate(b.Len() - 1) // the line end of Encode
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "%q:", key)
		if err := e.Encode(v); err != nil { // cannot happen to what was decoded
			return template.HTML(html.EscapeString(err.Error()))
		}
	}
	if b.Len() == 0 {
		return "{}"
	}
	text := safe.Text(strings.TrimSuffix(b.String(), "\n")) + "}"
	return template.HTML(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text))
}
