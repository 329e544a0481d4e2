package cuda_test

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/emulator"
	"rnnbench/device/devicetest"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

var (
	update = flag.Bool("update", false, "rewrite golden files")
	texts  = flag.String("texts", "", "write what TestKernelTexts hashes to files of this folder")
)

// A recorder is a driver and a compiler that keep all that they are given. It has no memory: all
// its allocations begin at one address.
type recorder struct {
	*emulator.Driver
	properties driver.Properties
	kernels    []string // their texts
	lists      [][]driver.Call
}

func (r *recorder) Properties() driver.Properties            { return r.properties }
func (r *recorder) Alloc(int64) (driver.Pointer, error)      { return 1 << 32, nil }
func (r *recorder) Free(driver.Pointer) error                { return nil }
func (r *recorder) Clear(...driver.Extent) error             { return nil }
func (r *recorder) Download([]byte, driver.Pointer) error    { return nil }
func (r *recorder) Upload(driver.Pointer, []byte) error      { return nil }
func (r *recorder) CopyIn(driver.Pointer, []byte, int) error { return nil }
func (r *recorder) CopyOut([]byte, driver.Pointer) error     { return nil }
func (r *recorder) Issue(driver.Sequence) (int, error)       { return 0, nil }
func (r *recorder) FreeSequence(driver.Sequence) error       { return nil }
func (r *recorder) Version() string                          { return "" }
func (r *recorder) Compile(_, source string) ([]byte, error) { return []byte(source), nil }

func (r *recorder) Load(image []byte, _ string) (driver.Kernel, error) {
	r.kernels = append(r.kernels, string(image))
	return driver.Kernel{ID: len(r.kernels) - 1}, nil
}

func (r *recorder) Resident(driver.Kernel, int, int) (int, error) { return 1, nil }

func (r *recorder) Clusters(_ driver.Kernel, size, _, _ int) (int, error) {
	if r.properties.Clusters != nil {
		return r.properties.Clusters[size], nil
	}
	return r.properties.SMs / size, nil
}

func (r *recorder) Sequence(c []driver.Call) (driver.Sequence, error) {
	r.lists = append(r.lists, c)
	return 1, nil
}

// describe spells all calls of the last program, with the texts of their kernels, but without
// comments and without the names of launched functions.
func (r *recorder) describe(t *testing.T) string {
	var b strings.Builder
	sums := map[int][sha256.Size]byte{}             // of texts, by kernel
	for _, list := range r.lists[len(r.lists)-2:] { // the preparation, then a run
		for _, c := range list {
			fmt.Fprintf(&b, "stream %d event %d wait %v\n", c.Stream, c.Event, c.Wait)
			switch {
			case c.Launch != nil:
				l := c.Launch
				fmt.Fprintf(&b, "launch %v %v shared %d cooperative %v cluster %d urgent %v early %v args %x\n",
					l.Grid, l.Block, l.Shared, l.Cooperative, l.Cluster, l.Urgent, l.Early, l.Args)
				if len(l.Table) > 0 {
					fmt.Fprintf(&b, "table %x\n", l.Table)
				}
				for _, m := range l.Tensors {
					fmt.Fprintf(&b, "tensor %#x %v %v %v %v %v\n", m.At, m.Element, m.Sizes, m.Strides, m.Box, m.Turned)
				}
				sum, ok := sums[l.Kernel.ID]
				if !ok {
					body, defined := nameless(l.Name, r.kernels[l.Kernel.ID])
					if !defined {
						t.Errorf("a kernel is launched as %q, which its text does not define", l.Name)
					}
					sum = sha256.Sum256([]byte(body))
					sums[l.Kernel.ID] = sum
				}
				fmt.Fprintf(&b, "%d parameters of %x\n", len(l.Params), sum)
			case c.Product != nil:
				fmt.Fprintf(&b, "product %+v\n", *c.Product)
			case c.Network != nil:
				fmt.Fprintf(&b, "network %+v\n", *c.Network)
			}
		}
	}
	return b.String()
}

// renamed are functions of kernels that had other names when the golden file was
// written.
var renamed = strings.NewReplacer("simt_layer(", "cluster_layer(", "mma_layer(", "tensor_layer(", "mma_poll_layer(", "pull_layer(",
	"mma_bulk_layer(", "turns_layer(", "wholerow_layer(", "rows_layer(")

// nameless returns a kernel's text without its comments and its name, and whether it defines a
// function of that name.
func nameless(name, text string) (body string, defined bool) {
	text = renamed.Replace(text)
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		for {
			before, after, ok := strings.Cut(line, name)
			if !ok {
				break
			}
			b.WriteString(before)
			if word(before, len(before)-1) || word(after, 0) { // part of another name
				b.WriteString(name)
			} else {
				b.WriteString("KERNEL")
				defined = defined || strings.HasPrefix(after, "(")
			}
			line = after
		}
		b.WriteString(line + "\n")
	}
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(b.String(), "\n"), "\n") {
		line, _, _ = strings.Cut(line, "//")
		if line != "" {
			out.WriteString(strings.TrimRight(line, " \t") + "\n")
		}
	}
	return out.String(), defined
}

// word reports whether byte i of s can be part of a name.
func word(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return false
	}
	c := s[i]
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// gpus are the GPUs that kernels are written for.
func gpus() map[string]driver.Properties {
	old := driver.Properties{Capability: 80, SMs: 108, Shared: 163 << 10, L2: 40 << 20}
	next := h200()
	next.Capability, next.Hopper = 100, false
	return map[string]driver.Properties{
		"h200": h200(), "a100": old, "next": next, "small": {Capability: 90, Hopper: true, SMs: 8, Shared: 227 << 10, L2: 1 << 20},
	}
}

// A compiled is a schedule for one of gpus.
type compiled struct {
	name     string
	schedule *schedule.Schedule
	knobs    knob.Params
	gpu      string
}

// later are cells that came after the other schedules had been drawn, which stay as they are. Their
// schedules are in laterTexts.
var later = []*cell.Cell{cell.SLSTM}

// drawn are the cells of which schedules are drawn.
func drawn() []*cell.Cell {
	return slices.DeleteFunc(cell.All(), func(c *cell.Cell) bool { return slices.Contains(later, c) })
}

// laterTexts are persistent layers of later cells, their gradients, the same step by step, layers that
// normalise, and CTC losses.
func laterTexts(t *testing.T) (out []compiled) {
	for _, c := range later {
		for i, precision := range []schedule.Precision{schedule.FP32, schedule.BF16, schedule.FP16, schedule.TF32} {
			for _, stepwise := range []bool{false, true} {
				for _, back := range []bool{false, true} {
					l := devicetest.Layer{Cell: c, Hidden: []int{512, 64, 256, 133}[i], Batch: 16, Steps: 16, Train: true, Backward: back, Precision: precision}
					s, err := devicetest.Case{Layer: l, Stepwise: stepwise}.Build()
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, compiled{name: fmt.Sprintf("%v stepwise=%v h200", l, stepwise), schedule: s, gpu: "h200"})
				}
			}
		}
	}
	wide := devicetest.Layer{Cell: cell.LSTM, Hidden: 2304, Batch: 32, Steps: 16, Backward: true, Precision: schedule.BF16}
	s, err := wide.Schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	out = append(out, compiled{name: fmt.Sprintf("%v wideback=1 h200", wide), schedule: s, knobs: knob.Params{"wideback": 1}, gpu: "h200"})
	return slices.Concat(out, normTexts(t), []compiled{{name: "ctc losses", schedule: transcribed(t), gpu: "h200"}})
}

// normTexts are layers that normalise their products.
func normTexts(t *testing.T) (out []compiled) {
	for i, c := range []*cell.Cell{cell.LSTM.Norm(), cell.GRU} {
		for _, precision := range []rnn.Precision{rnn.FP32, rnn.BF16} {
			p := rnn.Problem{Cell: c, Norm: rnn.NormLayer, Input: 64, Hidden: 256 + 2048*i, Layers: 1, Batch: 16, Steps: 3, Precision: precision, Pass: rnn.Train}
			_, s, err := rnn.Layout(impl.Lookup("cudnnstyle"), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, compiled{name: fmt.Sprintf("norm %v", p), schedule: s, gpu: "h200"})
		}
	}
	return out
}

// layerTexts are persistent layers, their gradients, stacks of them, and layers as products and
// cells, with every knob.
func layerTexts(t *testing.T, rng *rand.Rand) (out []compiled) {
	add := func(gpu string, l devicetest.Layer, k knob.Params, stepwise bool) {
		s, err := l.Schedule(uint64(l.Hidden))
		if stepwise {
			s, err = devicetest.Case{Layer: l, Stepwise: true}.Build()
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, compiled{name: fmt.Sprintf("%v %v stepwise=%v %s", l, k, stepwise, gpu), schedule: s, knobs: k, gpu: gpu})
	}
	var cells []*cell.Cell
	for _, c := range drawn() {
		if c.Recurrent > 0 {
			cells = append(cells, c)
		}
	}
	knobs := []knob.Params{
		nil, nil, nil, {"resident": 1}, {"resident": 2}, {"resident": 3}, {"resident": 4, "tensor": 1}, {"resident": 5, "tensor": 1}, {"resident": 6},
		{"tensor": 1}, {"tensor": 2}, {"functions": 1}, {"functions": 2}, {"clocks": 1}, {"share": 2}, {"samples": 8}, {"samples": 2}, {"lanes": 8}, {"tile": 4},
		{"cluster": 4, "resident": 1}, {"groups": 2, "resident": 2}, {"back": 3}, {"back": 16},
		{"narrow": 1}, {"narrow": 2}, {"narrow": 3}, {"narrowwidth": 64}, {"narrowrows": 16}, {"split": 1}, {"split": 2}, {"split": 3}, nil,
	}
	hidden, batch, steps := []int{20, 64, 133, 256, 512, 700, 1024, 1536, 2048}, []int{1, 3, 8, 16, 32, 64, 128, 300}, []int{1, 2, 7, 16, 64}
	for i := range 320 {
		l := devicetest.Layer{
			Cell: cells[rng.IntN(len(cells))], Hidden: hidden[rng.IntN(len(hidden))], Batch: batch[rng.IntN(len(batch))], Steps: steps[rng.IntN(len(steps))],
			Train: rng.IntN(2) == 0, Backward: rng.IntN(3) == 0, Precision: schedule.Precision(rng.IntN(4)),
		}
		if rng.IntN(8) == 0 {
			l.Layers, l.Backward = 2+rng.IntN(3), false
		}
		gpu := "h200"
		if i%5 == 4 {
			gpu = []string{"a100", "next", "small"}[rng.IntN(3)]
		}
		stepwise := l.Layers == 0 && rng.IntN(4) == 0
		add(gpu, l, knobs[rng.IntN(len(knobs))], stepwise)
	}
	for _, c := range devicetest.Stacks("stack") {
		add("h200", c.Layer, c.Knobs, false)
	}
	return out
}

// scanTexts are scans and their gradients.
func scanTexts(t *testing.T, rng *rand.Rand) (out []compiled) {
	sizes := [][3]int{{64, 1, 20}, {512, 1, 64}, {4096, 1, 33}, {300, 8, 256}, {1000, 64, 512}, {33, 128, 1024}, {16384, 1, 128}, {2049, 2, 16}, {100, 300, 512}}
	for _, c := range []*cell.Cell{cell.Linear, cell.SRU, cell.LSLSTM.Core} {
		for _, size := range sizes {
			precision, k, gpu := schedule.Precision(rng.IntN(4)), knob.Params(nil), "h200"
			train := rng.IntN(2) == 0
			if rng.IntN(4) == 0 {
				k = knob.Params{"scansteps": 2 + rng.IntN(3)}
			}
			if rng.IntN(4) == 0 {
				gpu = []string{"a100", "next", "small"}[rng.IntN(3)]
			}
			s, _, _ := scansIn(t, precision, c, size[0], size[1], size[2], train)
			out = append(out, compiled{name: fmt.Sprintf("scan %v %v train=%v %v %v %s", c, size, train, precision, k, gpu), schedule: s, knobs: k, gpu: gpu})
		}
	}
	return out
}

// techniqueTexts are whole problems by techniques. They have sequences of products, sums and copies
// that no single layer has.
func techniqueTexts(t *testing.T, rng *rand.Rand) (out []compiled) {
	for _, tech := range impl.All() {
		for i := range 24 {
			p := rnn.Problem{
				Cell: drawn()[rng.IntN(len(drawn()))], Input: []int{9, 64, 512}[rng.IntN(3)], Hidden: []int{20, 64, 256, 512}[rng.IntN(4)], Layers: 1 + rng.IntN(3),
				Batch: []int{1, 16, 64}[rng.IntN(3)], Steps: []int{2, 9, 20}[rng.IntN(3)], Precision: rnn.Precision(rng.IntN(4)), Pass: rnn.Pass(rng.IntN(2)),
			}
			if rng.IntN(3) == 0 {
				p.Output = 40
			}
			if rng.IntN(5) == 0 {
				p.OneHot = true
			}
			_, s, err := rnn.Layout(tech, p, nil)
			if err != nil {
				continue // what a technique declines
			}
			gpu := "h200"
			if i%6 == 5 {
				gpu = []string{"a100", "next", "small"}[rng.IntN(3)]
			}
			out = append(out, compiled{name: fmt.Sprintf("%s %+v %s", tech.Name(), p, gpu), schedule: s, knobs: nil, gpu: gpu})
		}
	}
	return out
}

// trainingTexts are networks whose parameters change in each run.
func trainingTexts(t *testing.T) (out []compiled) {
	for _, o := range []rnn.Optimizer{{Rule: schedule.SGD}, {Rule: schedule.SGD, Beta1: 0.9, Norm: true, Carry: true}, {Rule: schedule.SGD, Beta1: 0.9, Nesterov: true, Norm: true}, {Rule: schedule.Adam, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Norm: true}} {
		for _, precision := range []rnn.Precision{rnn.FP32, rnn.BF16} {
			p := rnn.Problem{Cell: cell.LSTM, Input: 64, Hidden: 256, Layers: 1, Batch: 16, Steps: 9, Output: 40, Precision: precision, Pass: rnn.Train}
			if o == (rnn.Optimizer{}) && precision == rnn.FP32 { // of a large table, only some rows change
				p.Input, p.OneHot = 4200, true
			}
			_, s, err := rnn.LayoutTraining(impl.Lookup("persistent"), p, nil, o)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, compiled{name: fmt.Sprintf("training %+v %+v", p, o), schedule: s, gpu: "h200"})
		}
	}
	return out
}

// productTexts are fp32 products alone: gradients of weights with split sums and the operations
// around them, and factors that the copy engine cannot copy.
func productTexts(t *testing.T) (out []compiled) {
	for _, size := range [][3]int{{2312, 256, 65536}, {1024, 256, 16384}, {16384, 1536, 41}, {1536, 41, 16384}, {65536, 256, 256}, {300, 64, 512}, {1, 512, 512}, {16384, 1024, 4096}} {
		for _, trans := range []bool{false, true} {
			for _, gpu := range []string{"h200", "a100"} {
				for _, split := range []int{0, 1, 3} {
					b := schedule.NewBuilder(1)
					m, n, k := size[0], size[1], size[2]
					for i := range 3 {
						a := b.Matrix("a", m, k).All()
						if trans {
							a = b.Matrix("a", k, m).All()
						}
						right, c := b.Matrix("b", k, n).All(), b.Matrix("c", m, n).All()
						b.Do(0, schedule.Gemm{A: a, B: right, C: c, TransA: trans, Accumulate: i == 1})
						if i == 0 {
							b.Do(0, schedule.Map{Op: cell.Add, Out: c, A: c, B: b.Matrix("row", 1, n).All()})
						}
						if i == 2 {
							b.Do(0, schedule.SumRows{A: right, Out: b.Matrix("sum", 1, n).All()})
						}
					}
					s, err := b.Schedule()
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, compiled{fmt.Sprintf("products %v trans=%v split=%d %s", size, trans, split, gpu), s, knob.Params{"split": split}, gpu})
				}
			}
		}
	}
	return out
}

// A text is the text of a kernel, and the schedule that has it.
type text struct{ of, body string }

// A corpus is all that a GPU would be sent for all schedules.
type corpus struct {
	lines    []string // a hash for each
	kernels  []text   // in the order in which they were met first
	declined int
}

var compiledOnce struct {
	sync.Once
	corpus
}

// compileAll compiles all schedules, once.
func compileAll(t *testing.T) *corpus {
	if fused(1+0x1p-30, 1-0x1p-30, -1) {
		t.Skip("this processor rounds a product and a sum only once, so another kernel may be the cheapest")
	}
	compiledOnce.Do(func() {
		driver, err := emulator.New(8, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer driver.Close()
		rng := rand.New(rand.NewPCG(29, 1))
		properties, seen := gpus(), map[string]bool{}
		for i, c := range slices.Concat(layerTexts(t, rng), scanTexts(t, rng), techniqueTexts(t, rng), productTexts(t), trainingTexts(t), laterTexts(t)) {
			r := &recorder{Driver: driver, properties: properties[c.gpu]}
			sent := compile(t, c, r, &compiledOnce.corpus)
			compiledOnce.lines = append(compiledOnce.lines, fmt.Sprintf("%03d %s: %.12x", i, c.name, sha256.Sum256([]byte(sent))))
			slices.Sort(r.kernels) // they are loaded in any order
			for _, k := range r.kernels {
				if sent += "\n" + k; !seen[k] {
					seen[k] = true
					compiledOnce.kernels = append(compiledOnce.kernels, text{of: c.name, body: k})
				}
			}
			if *texts != "" {
				if err := os.WriteFile(filepath.Join(*texts, fmt.Sprintf("%03d", i)), []byte(sent), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	return &compiledOnce.corpus
}

// compile compiles a schedule and returns what r was sent.
func compile(t *testing.T, c compiled, r *recorder, all *corpus) string {
	d := cuda.New(r, r, "")
	sent, k := "", knob.Params{}
	for _, has := range d.Knobs(c.schedule) {
		if v, ok := c.knobs[has.Name]; ok {
			k[has.Name] = v
		}
	}
	p, err := d.Compile(c.schedule, k)
	if memory, no := d.Memory(c.schedule, k); no == nil {
		sent = fmt.Sprintf("memory %d\n", memory)
	}
	if errors.Is(err, schedule.ErrUnsupported) || errors.Is(err, schedule.ErrKnob) {
		all.declined++
		return sent + "declined\n"
	}
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	sent += r.describe(t)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return sent
}

// fused reports whether a·b + c rounds only once on this processor: then the result is not 0.
//
//go:noinline
func fused(a, b, c float64) bool { return a*b+c != 0 }

// TestKernelTexts holds what a GPU would be sent for some hundred schedules to a golden file of
// hashes: geometry, arguments and the texts of kernels. It shows whether a change leaves kernels as
// they were. Run it with -texts DIR before and after to see what has changed.
func TestKernelTexts(t *testing.T) {
	all := compileAll(t)
	t.Logf("%d schedules, of which %d are declined; %d kernels", len(all.lines), all.declined, len(all.kernels))
	golden := filepath.Join("testdata", "kernels.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(strings.Join(all.lines, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(want) != len(all.lines) {
		t.Fatalf("%d schedules, and %d in %s", len(all.lines), len(want), golden)
	}
	for i, line := range all.lines {
		if line != want[i] {
			t.Errorf("it has changed:\n got %s\nwant %s", line, want[i])
		}
	}
}
