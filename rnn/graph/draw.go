package graph

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A drawing is a graph to be drawn: as given, with a frame around each recurrent node (Figure 1 of
// the paper), or with each recurrent node as one box (Figure 2).
type drawing struct {
	title  string
	nodes  []drawn
	edges  []arrow
	blocks []drawnBlock
}

// A drawn node has lines of text.
type drawn struct {
	lines  []string
	double bool // a recurrent node
	round  bool // an input
}

// An arrow is thick where its weights are full, dashed where it is delayed.
type arrow struct {
	from, to int
	weight   Weight
	delay    int
}

// A drawnBlock is a component: its nodes column by column.
type drawnBlock struct {
	level   int
	framed  bool
	columns [][]int
}

// draw makes the nodes, edges and blocks of a drawing.
func (g *Graph) draw(grouped bool) (*drawing, error) {
	a, err := g.Analyze()
	if err != nil {
		return nil, err
	}
	d := &drawing{title: g.Name}
	place := make([]int, len(g.Layers))
	for i, c := range a.Components {
		b := drawnBlock{level: c.Level, framed: c.Recurrent && !grouped}
		if grouped {
			n := drawn{double: c.Recurrent, round: g.Layers[c.Layers[0]].Input != Hidden}
			for _, k := range c.Layers {
				place[k] = len(d.nodes)
				n.lines = append(n.lines, g.label(k))
			}
			b.columns = [][]int{{len(d.nodes)}}
			d.nodes, d.blocks = append(d.nodes, n), append(d.blocks, b)
			continue
		}
		column := map[int]int{} // layer → its column
		for _, k := range c.Layers {
			for _, m := range g.Into(k) {
				if e := g.Connections[m]; e.Delay == 0 && a.Of[e.From] == i {
					column[k] = max(column[k], column[e.From]+1)
				}
			}
			for len(b.columns) <= column[k] {
				b.columns = append(b.columns, nil)
			}
			place[k] = len(d.nodes)
			b.columns[column[k]] = append(b.columns[column[k]], len(d.nodes))
			d.nodes = append(d.nodes, drawn{lines: []string{g.label(k)}, round: g.Layers[k].Input != Hidden})
		}
		d.blocks = append(d.blocks, b)
	}
	for _, c := range g.Connections {
		e := arrow{place[c.From], place[c.To], c.Weight, c.Delay}
		if grouped && (a.Inside(c) || slices.Contains(d.edges, e)) {
			continue
		}
		d.edges = append(d.edges, e)
	}
	return d, nil
}

// label is the text in a layer's box: its name, what it computes if the name does not tell, and its
// size.
func (g *Graph) label(k int) string {
	l := g.Layers[k]
	s := l.Name
	switch {
	case l.Input == Hidden && l.Activation != Linear && !strings.Contains(s, l.Activation.String()):
		s += " " + l.Activation.String()
	case l.Aggregate != Sum && !strings.Contains(s, "·"):
		s += " " + l.Aggregate.String()
	}
	return fmt.Sprintf("%s %d", s, l.Size)
}

// DOT writes g for Graphviz, as given or grouped.
func (g *Graph) DOT(w io.Writer, grouped bool) error {
	d, err := g.draw(grouped)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n\trankdir=LR;\n\tnode [shape=box, fontname=Helvetica];\n\tedge [fontname=Helvetica];\n", d.title)
	for i, block := range d.blocks {
		indent := "\t"
		if block.framed {
			fmt.Fprintf(&b, "\tsubgraph cluster%d {\n\t\tlabel=\"recurrent node\";\n\t\tstyle=\"rounded,dashed\";\n", i)
			indent = "\t\t"
		}
		for _, n := range slices.Concat(block.columns...) {
			more := ""
			if d.nodes[n].double {
				more = ", peripheries=2"
			}
			if d.nodes[n].round {
				more = ", style=rounded"
			}
			fmt.Fprintf(&b, "%sn%d [label=%q%s];\n", indent, n, strings.Join(d.nodes[n].lines, "\n"), more)
		}
		if block.framed {
			b.WriteString("\t}\n")
		}
	}
	for _, e := range d.edges {
		var attr []string
		if e.weight == Full {
			attr = append(attr, "penwidth=3")
		}
		if e.weight == Diagonal {
			attr = append(attr, "arrowhead=dot")
		}
		if e.delay > 0 {
			attr = append(attr, "style=dashed", fmt.Sprintf("label=%d", e.delay))
		}
		fmt.Fprintf(&b, "\tn%d -> n%d [%s];\n", e.from, e.to, strings.Join(attr, ", "))
	}
	b.WriteString("}\n")
	_, err = io.WriteString(w, b.String())
	return err
}
