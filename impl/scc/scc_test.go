package scc_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/impl/scc"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/graph"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// TestGraphsAreTheCells holds the graph of each cell, by the paper's equations,
// to the cell's own reference: both in double precision, so that only the order
// of sums may differ.
func TestGraphsAreTheCells(t *testing.T) {
	for _, c := range cell.All() {
		if c.Window > 1 || c == cell.RGLRU || c == cell.SLSTM { // graph.New declines it
			continue
		}
		for _, p := range []rnn.Problem{
			{Cell: c, Input: 3, Hidden: 5, Layers: 2, Batch: 3, Steps: 4, Pass: rnn.Train},
			{Cell: c, Input: 6, Hidden: 4, Layers: 1, Batch: 2, Steps: 3, Output: 5, OneHot: true, Pass: rnn.Train},
			{Cell: c, Input: 2, Hidden: 4, Layers: 2, Batch: 1, Steps: 3, History: 2, Output: 3, Pass: rnn.Train},
		} {
			g, err := graph.New(graph.Stack{Cell: c, Layers: p.Layers, Input: p.Input, Hidden: p.Hidden, Output: p.Output, Symbols: p.OneHot})
			if err != nil {
				t.Fatal(err)
			}
			data := rnn.NewData(p, 1, p.Batch, "normal")
			in := graph.Values{}
			take := func(name string) {
				for _, v := range data.Get(name) {
					in[name] = append(in[name], float64(v))
				}
			}
			for _, q := range g.Params() {
				take(q.Name)
			}
			for _, l := range g.Layers {
				for _, name := range []string{l.Given, l.Initial} {
					if name != "" {
						take(name)
					}
				}
			}
			got, err := g.Reference(graph.Size{Batch: p.Batch, History: p.History, Steps: p.Steps, Train: true}, in)
			if err != nil {
				t.Fatal(err)
			}
			compared := 0
			for _, want := range oracle.Reference(data) {
				v, ok := got[counterpart(want.Name, p)]
				if !ok {
					continue
				}
				compared++
				for i, w := range want.Values {
					if math.Abs(v[i]-w) > 1e-12*(1+math.Abs(w)) {
						t.Errorf("%v: %s[%d] is %g, %g by the graph", p, want.Name, i, w, v[i])
						break
					}
				}
			}
			if least := 3 * p.Layers; compared < least {
				t.Errorf("%v: %d parts of the answer compared, want %d at least", p, compared, least)
			}
		}
	}
}

// counterpart returns a graph's name for the network's tensor of the given name.
func counterpart(name string, p rnn.Problem) string {
	switch {
	case name == "loss":
		return "loss out"
	case name == "dx":
		return "grad x"
	case strings.HasPrefix(name, "grad_"):
		return "grad " + strings.TrimPrefix(name, "grad_")
	case p.Layers == 1: // a state: h_l0 is layer h
		return "y " + strings.TrimSuffix(name, "_l0")
	}
	return "y " + name
}

// files are graphs as users write them.
func files(t *testing.T) []*graph.Graph {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.toml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no graph files: %v", err)
	}
	var list []*graph.Graph
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		g, err := graph.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		list = append(list, g)
	}
	return list
}

// TestGraphs compares random graphs, and those of the files in testdata, on the device with the
// reference.
func TestGraphs(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	graphs := files(t)
	count := 60
	if testing.Short() {
		count = 30
	}
	for i := range count {
		graphs = append(graphs, random(t, rng, fmt.Sprintf("random%d", i)))
	}
	sizes := []graph.Size{
		{Batch: 1, Steps: 1}, {Batch: 3, Steps: 5}, {Batch: 2, Steps: 4, Train: true}, {Batch: 1, Steps: 7, Train: true},
		{Batch: 2, History: 3, Steps: 3, Train: true}, {Batch: 1, History: 1, Steps: 4, Train: true}, {Batch: 1, History: 4, Steps: 1, Train: true},
	}
	for i, g := range graphs {
		for j := range sizes {
			if i >= 20 && j != i%len(sizes) { // one size of most
				continue
			}
			size := sizes[j]
			in := g.Draw(size, rng)
			want, err := g.Reference(size, in)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range []knob.Params{{"intra": 1}, {"intra": 0}, {"intra": 1, "transposed": 0}, {"intra": 0, "transposed": 2}} {
				dev, err := run(d, g, size, k, in, want)
				if err != nil {
					t.Fatalf("%s %+v %v: %v", g.Name, size, k, err)
				}
				if !dev.OK() {
					t.Errorf("%s %+v %v: %v", g.Name, size, k, dev)
				}
			}
		}
	}
}

func run(d *cpu.Device, g *graph.Graph, size graph.Size, k knob.Params, in, want graph.Values) (oracle.Deviation, error) {
	n, err := scc.Layout(g, size, k)
	if err != nil {
		return oracle.Deviation{}, err
	}
	if err := schedule.Verify(n.Schedule); err != nil {
		return oracle.Deviation{}, err
	}
	prog, err := d.Compile(n.Schedule, nil)
	if err != nil {
		return oracle.Deviation{}, err
	}
	defer prog.Close()
	if err := n.Write(prog, in); err != nil {
		return oracle.Deviation{}, err
	}
	if err := prog.Prepare(); err != nil {
		return oracle.Deviation{}, err
	}
	if _, err := prog.Run(2); err != nil { // nothing may be left of the first
		return oracle.Deviation{}, err
	}
	got, err := n.Read(prog)
	if err != nil {
		return oracle.Deviation{}, err
	}
	return oracle.CompareGraph(g, size, got, want)
}

// random returns a random graph: an input of either kind, layers of all kinds and a softmax output.
// Connections backwards are delayed.
func random(t *testing.T, rng *rand.Rand, name string) *graph.Graph {
	t.Helper()
	var b strings.Builder
	symbols := rng.IntN(2) == 0
	fmt.Fprintf(&b, "name = %q\n[[layer]]\nname = \"in\"\nsize = 3\ninput = %q\n", name, map[bool]string{true: "symbols", false: "dense"}[symbols])
	n := 2 + rng.IntN(7)
	for k := range n {
		aggregate := graph.Aggregates()[[]int{0, 0, 1, 2}[rng.IntN(4)]]
		fmt.Fprintf(&b, "[[layer]]\nname = \"l%d\"\nsize = 3\naggregate = %q\nactivation = %q\n", k, aggregate, []string{"linear", "sigmoid", "tanh", "oneminus"}[rng.IntN(4)])
		if aggregate == "sum" && rng.IntN(2) == 0 {
			b.WriteString("bias = true\n")
		}
	}
	fmt.Fprintf(&b, "[[layer]]\nname = \"out\"\nsize = 4\nactivation = \"softmax\"\nbias = true\n")
	connect := func(from, to int, delay int) {
		names := func(k int) string {
			switch {
			case k < 0:
				return "in"
			case k == n:
				return "out"
			}
			return fmt.Sprintf("l%d", k)
		}
		weight := graph.Weights()[rng.IntN(3)]
		if from < 0 && symbols {
			weight, delay = "full", 0
		}
		if to == n {
			weight = "full"
		}
		fmt.Fprintf(&b, "[[connection]]\nfrom = %q\nto = %q\nweight = %q\ndelay = %d\n", names(from), names(to), weight, delay)
	}
	for k := range n {
		connect(rng.IntN(k+1)-1, k, rng.IntN(2))
		for range rng.IntN(3) {
			from, delay := rng.IntN(n+1)-1, rng.IntN(3)
			if from >= k {
				delay = 1 + rng.IntN(2)
			}
			connect(from, k, delay)
		}
	}
	connect(-1, 0, 0)
	connect(n-1, n, 0)
	connect(rng.IntN(n), n, rng.IntN(2))
	g, err := graph.Parse([]byte(b.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	return g
}
