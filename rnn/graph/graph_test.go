package graph_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/graph"
)

var update = flag.Bool("update", false, "rewrite golden files")

// names spells components as sets of layers.
func names(g *graph.Graph, a *graph.Analysis, recurrent bool) []string {
	var list []string
	for _, c := range a.Components {
		if c.Recurrent != recurrent {
			continue
		}
		var words []string
		for _, k := range c.Layers {
			words = append(words, g.Layers[k].Name)
		}
		list = append(list, strings.Join(words, " "))
	}
	return list
}

// TestRecurrentNodes compares the components of cells with what their equations
// say.
func TestRecurrentNodes(t *testing.T) {
	tests := []struct {
		cell      *cell.Cell
		recurrent string
	}{
		{cell.RNNTanh, "h"},
		{cell.RNNReLU, "h"},
		{cell.GRU, "r z n_r r·n_r n 1-z (1-z)·n z·h' h"},
		{cell.LSTM, "i f g o f·c' i·g c tanh(c) h"},
		{cell.LSTMPeephole, "i f g f·c' i·g c o tanh(c) h"},
		{cell.LSTMC, "i f f·c' i·g c"},
		{cell.GILR, "g·h' h"},
		{cell.SRU, "f·c' c"},
		{cell.QRNN, "f·c' c"},
	}
	for _, test := range tests {
		g, err := graph.New(graph.Stack{Cell: test.cell, Layers: 1, Input: 3, Hidden: 4, Output: 5})
		if err != nil {
			t.Errorf("%v: %v", test.cell, err)
			continue
		}
		a, err := g.Analyze()
		if err != nil {
			t.Fatal(err)
		}
		if got := names(g, a, true); len(got) != 1 || !sameWords(got[0], test.recurrent) {
			t.Errorf("%v: recurrent nodes %q, want %q", test.cell, got, test.recurrent)
		}
	}
	// The surrogate's recurrence and the memory cell's are separate, which is the point of the cell.
	g, err := graph.New(graph.Stack{Cell: cell.LSLSTM, Layers: 2, Input: 3, Hidden: 4})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := g.Analyze()
	if got := names(g, a, true); len(got) != 4 {
		t.Errorf("two ls-lstm layers have recurrent nodes %q, want four", got)
	}
}

func sameWords(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// graphless reports whether no graph can express c: c reads earlier frames of its input, needs a
// function of weights alone, or divides.
func graphless(c *cell.Cell) bool { return c.Window > 1 || c == cell.RGLRU || c == cell.SLSTM }

// TestEveryCellHasAGraph: every cell has a graph, later ones too, unless it is graphless.
func TestEveryCellHasAGraph(t *testing.T) {
	for _, c := range cell.All() {
		for _, s := range []graph.Stack{{Cell: c, Layers: 1, Input: 2, Hidden: 3}, {Cell: c, Layers: 3, Input: 5, Hidden: 3, Output: 4, Symbols: true}} {
			if graph.Has(c) == graphless(c) {
				t.Errorf("%v has a graph: %v", c, graph.Has(c))
			}
			g, err := graph.New(s)
			if declined := err != nil; declined || graphless(c) {
				if declined != graphless(c) {
					t.Errorf("%v: %v", c, err)
				}
				continue
			}
			a, err := g.Analyze()
			if err != nil {
				t.Fatal(err)
			}
			checkOrder(t, g, a)
		}
	}
}

// checkOrder checks an analysis against its definition, by other means than Tarjan's: components
// are the classes of mutual reachability, sources come before what they connect to, and inside a
// component delayed connections do not count.
func checkOrder(t *testing.T, g *graph.Graph, a *graph.Analysis) {
	t.Helper()
	n := len(g.Layers)
	reach := make([][]bool, n)
	for i := range reach {
		reach[i] = make([]bool, n)
	}
	for _, c := range g.Connections {
		reach[c.From][c.To] = true
	}
	for k := range n {
		for i := range n {
			for j := range n {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	place := map[int]int{}
	for _, c := range a.Components {
		for _, k := range c.Layers {
			place[k] = len(place)
		}
	}
	if len(place) != n {
		t.Fatalf("%s: %d of %d layers are in components", g.Name, len(place), n)
	}
	for i := range n {
		for j := range n {
			if together := i == j || reach[i][j] && reach[j][i]; together != (a.Of[i] == a.Of[j]) {
				t.Errorf("%s: %s and %s are in one component: %v", g.Name, g.Layers[i].Name, g.Layers[j].Name, !together)
			}
		}
		if a.Components[a.Of[i]].Recurrent != reach[i][i] {
			t.Errorf("%s: %s recurs: %v", g.Name, g.Layers[i].Name, reach[i][i])
		}
	}
	for _, c := range g.Connections {
		if (c.Delay == 0 || !a.Inside(c)) && place[c.From] >= place[c.To] {
			t.Errorf("%s: %s must come before %s", g.Name, g.Layers[c.From].Name, g.Layers[c.To].Name)
		}
		if !a.Inside(c) && a.Components[a.Of[c.From]].Level >= a.Components[a.Of[c.To]].Level {
			t.Errorf("%s: %s is not on a lower level than %s", g.Name, g.Layers[c.From].Name, g.Layers[c.To].Name)
		}
	}
}

// TestRandomGraphs checks analyses of random graphs.
func TestRandomGraphs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		g := random(rng, 2+rng.IntN(7))
		if err := g.Check(); err != nil {
			t.Fatalf("%v\n%+v", err, g)
		}
		a, err := g.Analyze()
		if err != nil {
			t.Fatal(err)
		}
		checkOrder(t, g, a)
	}
}

// random is a graph of an input, n layers of all kinds and an output, in which
// connections backwards are delayed.
func random(rng *rand.Rand, n int) *graph.Graph {
	var b strings.Builder
	b.WriteString("name = \"random\"\n[[layer]]\nname = \"in\"\nsize = 3\ninput = \"dense\"\n")
	for k := range n {
		aggregate := graph.Aggregates()[rng.IntN(3)]
		fmt.Fprintf(&b, "[[layer]]\nname = \"l%d\"\nsize = 3\naggregate = %q\nactivation = %q\n", k, aggregate, graph.Activations()[rng.IntN(5)])
		if aggregate == "sum" && rng.IntN(2) == 0 {
			b.WriteString("bias = true\n")
		}
	}
	fmt.Fprintf(&b, "[[layer]]\nname = \"out\"\nsize = 4\nactivation = \"softmax\"\nbias = true\n")
	connect := func(from, to, weight string, delay int) {
		fmt.Fprintf(&b, "[[connection]]\nfrom = %q\nto = %q\nweight = %q\ndelay = %d\n", from, to, weight, delay)
	}
	layer := func(k int) string {
		if k < 0 {
			return "in"
		}
		return fmt.Sprintf("l%d", k)
	}
	for k := range n {
		connect(layer(rng.IntN(k+1)-1), layer(k), graph.Weights()[rng.IntN(3)], rng.IntN(2))
		for range rng.IntN(3) {
			from := rng.IntN(n+1) - 1
			delay := rng.IntN(3)
			if from >= k {
				delay = 1 + rng.IntN(2)
			}
			connect(layer(from), layer(k), graph.Weights()[rng.IntN(3)], delay)
		}
	}
	connect(layer(n-1), "out", "full", 0)
	connect(layer(rng.IntN(n)), "out", "full", rng.IntN(2))
	g, err := graph.Parse([]byte(b.String()))
	if err != nil {
		panic(err.Error() + "\n" + b.String())
	}
	return g
}

// TestGradients compares (6) to (19) with central differences of the error.
func TestGradients(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var all []*graph.Graph
	for _, c := range cell.All() {
		if graphless(c) {
			continue
		}
		for _, s := range []graph.Stack{{Cell: c, Layers: 1, Input: 2, Hidden: 3, Output: 3}, {Cell: c, Layers: 2, Input: 4, Hidden: 2, Symbols: true}} {
			g, err := graph.New(s)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, g)
		}
	}
	for range 30 {
		all = append(all, random(rng, 2+rng.IntN(4)))
	}
	for i, g := range all {
		size := graph.Size{Batch: 1 + i%2, History: i % 3, Steps: 1 + i%4, Train: true}
		in := g.Draw(size, rng)
		got, err := g.Reference(size, in)
		if err != nil {
			t.Fatalf("%s: %v", g.Name, err)
		}
		failed := 0
		for name, grad := range got {
			name, ok := strings.CutPrefix(name, "grad ")
			if !ok {
				continue
			}
			for j := range grad {
				want, smooth := difference(t, g, size, in, name, j)
				if smooth && math.Abs(grad[j]-want) > 1e-7*(1+math.Abs(want)) && failed < 3 {
					failed++
					t.Errorf("%d %s: %s[%d] is %g, by differences %g", i, g.Name, name, j, grad[j], want)
				}
			}
		}
	}
}

// difference is the central difference of the error by in[name][j]. It also reports whether steps
// of two sizes agree, which they do not at a kink.
func difference(t *testing.T, g *graph.Graph, size graph.Size, in graph.Values, name string, j int) (float64, bool) {
	at := func(h float64) float64 {
		moved := maps.Clone(in)
		moved[name] = slices.Clone(in[name])
		moved[name][j] += h
		size.Train = false
		out, err := g.Reference(size, moved)
		if err != nil {
			t.Fatal(err)
		}
		var e float64
		for _, l := range g.Layers {
			for _, v := range out["loss "+l.Name] {
				e += v / float64(size.Steps*size.Batch)
			}
			if l.Input == graph.Hidden && l.Activation != graph.Softmax && l.Given != "" {
				for i, d := range in[l.Given] {
					e += d * out["y "+l.Name][size.History*size.Batch*l.Size+i]
				}
			}
		}
		return e
	}
	slope := func(h float64) float64 { return (at(h) - at(-h)) / (2 * h) }
	a, b := slope(1e-5), slope(3e-5)
	return a, math.Abs(a-b) < 1e-6*(1+math.Abs(a))
}

// TestTruncation: with frames from a previous minibatch, only the new frames' error counts. Its
// gradient is that of the same network over all frames, where the old frames' classes do not count.
func TestTruncation(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	g, err := graph.New(graph.Stack{Cell: cell.LSTMPeephole, Layers: 1, Input: 3, Hidden: 4})
	if err != nil {
		t.Fatal(err)
	}
	short := graph.Size{Batch: 2, History: 3, Steps: 4, Train: true}
	in := g.Draw(short, rng)
	long := graph.Size{Batch: 2, Steps: 7, Train: true}
	whole := maps.Clone(in)
	whole["dy"] = append(make([]float64, 3*2*4), in["dy"]...)
	a, err := g.Reference(short, in)
	if err != nil {
		t.Fatal(err)
	}
	b, err := g.Reference(long, whole)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(a, b, slices.Equal) {
		t.Errorf("BPTT(7; 4) is not BPTT of seven frames with the errors of four:\n%v\n%v", a, b)
	}
}

const head = `
name = "t"
[[layer]]
name = "x"
size = 2
input = "dense"
[[layer]]
name = "a"
size = 3
[[layer]]
name = "b"
size = 3
`

func TestErrors(t *testing.T) {
	connect := func(list ...string) string {
		var b strings.Builder
		for _, c := range list {
			w := strings.Fields(c)
			w = append(w, []string{"", "", "full", "0"}[len(w):]...)
			fmt.Fprintf(&b, "[[connection]]\nfrom = %q\nto = %q\nweight = %q\ndelay = %s\n", w[0], w[1], w[2], w[3])
		}
		return b.String()
	}
	tests := []struct{ text, want string }{
		{head + connect("x a", "a b", "b a identity 0"), "layers a → b → a form a loop without a delay"},
		{head + connect("x a", "a a identity 0", "a b"), `layer "a" connects to itself without a delay`},
		{head + connect("x a", "a c"), `the connection a → c ends at unknown layer "c"`},
		{head + connect("y a"), `the connection y → a begins at unknown layer "y"`},
		{head + connect("x a", "x b identity"), `"x" has 2 units and "b" has 3: a connection with identity weights needs equal numbers`},
		{head + connect("x a"), `nothing connects to layer "b"`},
		{head + connect("x a", "a b full -1"), "the connection a → b has a delay of -1"},
		{head + connect("x a", "a x", "a b"), `layer "x" is an input, but "a" connects to it`},
		{head + connect("x a", "a b", "b a full 1"), "the network has no output"},
		{head + connect("x a", "a b heavy"), `a → b: weight cannot be "heavy": write one of full, identity, diagonal`},
		{head + "[[layer]]\nname = \"a\"\nsize = 1\n", `two layers are called "a"`},
		{strings.Replace(head, "size = 3", "size = 0", 1) + connect("x a", "a b"), `layer "a" has 0 units`},
		{strings.Replace(head, "size = 3", "size = 3\naggregate = \"product\"\nbias = true", 1) + connect("x a", "a b"), `layer "a" is a product and cannot have a bias`},
		{strings.Replace(head, "size = 3", "size = 3\nactivation = \"softmax\"", 1) + connect("x a", "a b"), `layer "a" is a softmax, so it must be an output, but it connects to "b"`},
		{strings.Replace(head, "dense", "symbols", 1) + connect("x a", "x b full 1"), `"x" holds symbols, so its connection to "b" cannot be delayed`},
		{strings.Replace(head, "size = 3", "size = 3\nactivaton = \"tanh\"", 1), `line 10, column 1: unknown key "activaton" in [[layer]]: write one of name, size,`},
		{head + "[[connection]]\ndely = 1\n", `line 14, column 1: unknown key "dely" in [[connection]]: write one of from, to, weight, delay`},
		{"version = 1\n" + head, `line 1, column 1: unknown key "version" above the tables: write one of name, layer, connection`},
		{strings.Replace(head, "size = 3", "size = 3\nsize = 4", 1), "column 1: key size is already defined"},
		{strings.Replace(head, "size = 3", `size = "3"`, 1), "size has the wrong type: cannot decode TOML string"},
		{strings.Replace(head, `"a"`, `""`, 1) + connect("x a", "a b"), "layer 2 has no name"},
		{strings.Replace(head, `"a"`, `" \t"`, 1) + connect("x a", "a b"), "layer 2 has no name"},
		{strings.ReplaceAll(head, `"a"`, `"a\nb"`) + connect("x b"), `the name of layer "a\nb" has an unprintable character`},
		{strings.ReplaceAll(head, `"t"`, `"t\u001b[2J"`) + connect("x b"), `the name of network "t\x1b[2J" has an unprintable character`},
		{"name = ", "graph: "},
		{"", "the network has no input"},
	}
	for _, test := range tests {
		_, err := graph.Parse([]byte(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\n%v, want %q", test.text, err, test.want)
		}
	}
}

// TestNamesAreNames: the names of layers change nothing, even where they equal the name of a
// parameter or of another layer's input.
func TestNamesAreNames(t *testing.T) {
	const text = `
[[layer]]
name = "x"
size = 2
input = "dense"
[[layer]]
name = "u"
size = 5
input = "dense"
[[layer]]
name = "a"
size = 3
bias = true
[[layer]]
name = "b"
size = 3
[[layer]]
name = "c"
size = 3
[[layer]]
name = "d"
size = 3
[[layer]]
name = "e"
size = 3
[[layer]]
name = "y"
size = 4
activation = "softmax"
`
	var b strings.Builder
	b.WriteString(text)
	for _, c := range []string{"x a full 1", "u a full 0", "u a full 0", "a a full 1", "a b diagonal 0", "a b diagonal 1", "c d diagonal 0", "x c full 0", "b d full 1", "d e full 0", "d y full 0", "b y full 0"} {
		w := strings.Fields(c)
		fmt.Fprintf(&b, "[[connection]]\nfrom = %q\nto = %q\nweight = %q\ndelay = %s\n", w[0], w[1], w[2], w[3])
	}
	loss := func(names ...string) []float64 {
		g, err := graph.Parse([]byte(strings.NewReplacer(names...).Replace(b.String())))
		if err != nil {
			t.Fatal(err)
		}
		size := graph.Size{Batch: 2, Steps: 3, Train: true}
		out, err := g.Reference(size, g.Draw(size, rand.New(rand.NewPCG(1, 1))))
		if err != nil {
			t.Fatalf("%q: %v", names, err)
		}
		return out["loss y"]
	}
	want := loss()
	for _, names := range [][]string{
		{`"u"`, `"x'1"`}, {`"u"`, `"x\"'1"`}, {`"x"`, `"bias a"`}, {`"x"`, `"bias \"a\""`}, {`"u"`, `"weight x"`}, {`"u"`, `"target y"`}, {`"x"`, `"initial a"`}, {`"x"`, `"grad e"`},
		{`"u"`, `"peephole a → b"`}, {`"a"`, `"p"`, `"b"`, `"q → r"`, `"c"`, `"p → q"`, `"d"`, `"r"`}, {`"a"`, `"a\" → \"b"`},
	} {
		if got := loss(names...); !slices.Equal(got, want) {
			t.Errorf("%q: losses %v, and by other names %v", names, got, want)
		}
	}
}

// TestDrawings compares Figures 1 and 2 with golden files, and checks that every SVG is well
// formed.
func TestDrawings(t *testing.T) {
	g, err := graph.New(graph.Stack{Cell: cell.LSTMPeephole, Layers: 1, Input: 38, Hidden: 16, Output: 20, Symbols: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, grouped := range []bool{false, true} {
		for ending, draw := range map[string]func(io.Writer, bool) error{"dot": g.DOT, "svg": g.SVG} {
			var got bytes.Buffer
			if err := draw(&got, grouped); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", fmt.Sprintf("lstm-peephole-%v.%s", map[bool]string{false: "given", true: "grouped"}[grouped], ending))
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if dots := strings.Count(got.String(), "dot]") + strings.Count(got.String(), "arrowhead=dot, ") + strings.Count(got.String(), "url(#dot)"); dots != map[bool]int{false: 3}[grouped] {
				t.Errorf("%s has %d dots, want one for each peephole that is drawn", path, dots)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s differs (go test ./rnn/graph -update rewrites it):\n%s", path, got.Bytes())
			}
		}
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		g := random(rng, 5)
		for _, grouped := range []bool{false, true} {
			var got bytes.Buffer
			if err := g.SVG(&got, grouped); err != nil {
				t.Fatal(err)
			}
			for d := xml.NewDecoder(&got); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
