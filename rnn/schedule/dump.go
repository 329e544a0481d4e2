package schedule

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Dump writes s in a form made for reading and for golden files.
func (s *Schedule) Dump(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, m := range s.Matrices {
		kind := "matrix"
		switch {
		case m.Packed:
			kind = "packed"
		case m.Scratch:
			kind = "scratch"
		}
		fmt.Fprintf(b, "%s %s %d×%d\n", kind, m.Name, m.Rows, m.Cols)
	}
	for _, op := range s.Prepare {
		fmt.Fprintf(b, "prepare %v\n", op)
	}
	for i, n := range s.Nodes {
		wait := ""
		if len(n.Wait) > 0 {
			wait = fmt.Sprintf("  after %v", n.Wait)
		}
		fmt.Fprintf(b, "%d s%d  %v%s\n", i, n.Stream, n.Op, wait)
	}
	return b.Flush()
}

// DOT writes s as a Graphviz graph: a column per stream, solid arrows along the
// streams and dashed ones for the waits between them.
func (s *Schedule) DOT(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "digraph schedule {\n  node [shape=box fontname=\"monospace\" fontsize=9];")
	last := none[int](s.Streams)
	for stream := range s.Streams {
		fmt.Fprintf(b, "  subgraph cluster_%d {\n    label=\"stream %d\";\n", stream, stream)
		for i, n := range s.Nodes {
			if n.Stream == stream {
				fmt.Fprintf(b, "    n%d [label=\"%d: %s\"];\n", i, i, strings.ReplaceAll(n.Op.String(), `"`, `'`))
			}
		}
		fmt.Fprintln(b, "  }")
	}
	for i, n := range s.Nodes {
		if p := last[n.Stream]; p >= 0 {
			fmt.Fprintf(b, "  n%d -> n%d;\n", p, i)
		}
		last[n.Stream] = i
		for _, j := range n.Wait {
			fmt.Fprintf(b, "  n%d -> n%d [style=dashed constraint=false];\n", j, i)
		}
	}
	fmt.Fprintln(b, "}")
	return b.Flush()
}

// A Summary says what one run of a schedule consists of.
type Summary struct {
	Kinds []KindCount // in order of first appearance
	Nodes int
	Waits int

	FLOPs, Traffic, Memory int64

	// Critical is the number of FLOPs on the heaviest chain of operations
	// that must follow each other, whatever the streams: FLOPs / Critical is
	// the parallelism that streams could use at most between operations.
	Critical int64
	// Chain is the number of operations on the longest such chain.
	Chain int
}

// A KindCount sums the operations of one kind.
type KindCount struct {
	Name         string
	Count        int
	FLOPs, Bytes int64
}

// Summarize counts s.
func (s *Schedule) Summarize() Summary {
	sum := Summary{Nodes: len(s.Nodes), FLOPs: s.FLOPs(), Traffic: s.Traffic(), Memory: s.Memory()}
	for _, n := range s.Nodes {
		sum.Waits += len(n.Wait)
		i := slices.IndexFunc(sum.Kinds, func(k KindCount) bool { return k.Name == n.Op.Name() })
		if i < 0 {
			i = len(sum.Kinds)
			sum.Kinds = append(sum.Kinds, KindCount{Name: n.Op.Name()})
		}
		k := &sum.Kinds[i]
		k.Count++
		k.FLOPs += n.Op.FLOPs()
		k.Bytes += Bytes(n.Op)
	}

	// The chain of true dependencies is that of a schedule in which every operation has a stream of
	// its own. Its depth follows from the last writers of each band, and the readers since, without
	// deriving waits.
	type use struct {
		view  View
		write bool
		flops int64
		ops   int
	}
	band := bands(s)
	history := make([][][]use, len(s.Matrices))
	for i, m := range s.Matrices {
		history[i] = make([][]use, m.Rows/band[i])
	}
	for _, n := range s.Nodes {
		var flops int64
		var ops int
		for v, write := range Accesses(n.Op) {
			for b := v.Row / band[v.M.ID]; b*band[v.M.ID] < v.Row+v.Rows; b++ {
				for _, u := range history[v.M.ID][b] {
					if (u.write || write) && u.view.Overlaps(v) {
						flops, ops = max(flops, u.flops), max(ops, u.ops)
					}
				}
			}
		}
		flops, ops = flops+n.Op.FLOPs(), ops+1
		sum.Critical, sum.Chain = max(sum.Critical, flops), max(sum.Chain, ops)
		for v, write := range Accesses(n.Op) {
			size := band[v.M.ID]
			for b := v.Row / size; b*size < v.Row+v.Rows; b++ {
				at := View{v.M, b * size, v.Col, size, v.Cols}
				past := history[v.M.ID][b]
				kept := past[:0]
				for _, u := range past {
					if !write && !u.write && u.view == at { // one read stands for all of the same view
						flops, ops = max(flops, u.flops), max(ops, u.ops)
						continue
					}
					if !(write && at.covers(u.view)) {
						kept = append(kept, u)
					}
				}
				history[v.M.ID][b] = append(kept, use{at, write, flops, ops})
			}
		}
	}
	return sum
}
