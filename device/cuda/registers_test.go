package cuda_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/nvrtc"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Types of records of a few words in which an image describes its kernels: a thread's registers,
// and the bytes of its stack, which holds spills.
const (
	registerRecord = 0x042f
	stackRecord    = 0x0412
)

// most returns the largest value in an image's records of this type.
func most(record int, image []byte) (int, error) {
	const version, info = 20, ".nv.info" // of the format; CUDA defines the number
	image = bytes.Clone(image)
	binary.LittleEndian.PutUint32(image[version:], uint32(elf.EV_CURRENT))
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	s := f.Section(info)
	if s == nil {
		return 0, fmt.Errorf("there is no %s", info)
	}
	data, err := s.Data()
	if err != nil {
		return 0, err
	}
	most, found := 0, false
	for len(data) >= 12 {
		if int(data[0])<<8|int(data[1]) == record {
			most, found = max(most, int(binary.LittleEndian.Uint32(data[8:]))), true
		}
		data = data[4+int(binary.LittleEndian.Uint16(data[2:])):]
	}
	if !found {
		return 0, fmt.Errorf("%s has no record %#x", info, record)
	}
	return most, nil
}

// hopper returns a compiler for sm_90a, if NVRTC is here.
func hopper(t *testing.T) *nvrtc.Compiler { return compilerFor(t, 90) }

func compilerFor(t *testing.T, capability int) *nvrtc.Compiler {
	t.Helper()
	lib, err := nvrtc.Load(filepath.SplitList(os.Getenv("RNNBENCH_CUDA_LIBS"))...)
	if err != nil {
		t.Skip(err)
	}
	c, err := lib.For(capability)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLaterGPUs: kernels for a GPU that NVRTC does not know use nothing that the driver cannot
// assemble for it.
func TestLaterGPUs(t *testing.T) {
	const later = 900
	c, p := compilerFor(t, later), h200()
	p.Capability, p.Hopper = later, false
	works := map[string]*schedule.Schedule{"team": scanning(t, cell.Linear, "inference", [3]int{1, 256, 65536}), "groups": scanning(t, cell.SRU, "backward", [3]int{1, 32, 1 << 19})}
	for _, l := range []devicetest.Layer{
		{Cell: cell.LSTM, Hidden: 256, Batch: 64, Steps: 16, Layers: 4, Precision: schedule.BF16},
		{Cell: cell.LSTM, Hidden: 256, Batch: 64, Steps: 16, Layers: 4, Train: true, Precision: schedule.FP32},
		{Cell: cell.GRU, Hidden: 512, Batch: 16, Steps: 16, Backward: true, Precision: schedule.BF16},
	} {
		s, err := l.Schedule(1)
		if err != nil {
			t.Fatal(err)
		}
		works[l.String()] = s
	}
	b := schedule.NewBuilder(1)
	b.Do(0, schedule.Gemm{A: b.Matrix("a", 65536, 256).All(), B: b.Matrix("b", 256, 256).All(), C: b.Matrix("c", 65536, 256).All()})
	product, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	works["product"] = product
	for name, s := range works {
		launches, texts, err := cuda.Sources(s, nil, p)
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range launches {
			image, err := c.Compile(l.Name, texts[i])
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(image, []byte("setmaxnreg")) || bytes.Contains(image, []byte("wgmma")) {
				t.Errorf("%s: %s is for Hopper alone", name, l.Name)
			}
		}
	}
}

// TestSpills: gradients of the layers that are compared with cuDNN do not spill registers by
// default. Two exceptions are for gru 1024 at batch 64 in single precision: with fewer weights in
// registers, shared memory has no room for the others.
func TestSpills(t *testing.T) {
	c := hopper(t)
	for i, l := range trained() {
		if testing.Short() && i%8 != 0 {
			continue
		}
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			launches, texts := sources(t, l, nil)
			for i, launch := range launches {
				if !strings.HasPrefix(launch.Name, "persistent_backward") {
					continue
				}
				limit := 0
				if l.Cell == cell.GRU && l.Hidden == 1024 && l.Batch == 64 && l.Precision == schedule.FP32 {
					limit = 8
				}
				if n := recorded(t, c, stackRecord, launch, texts[i]); n > limit {
					t.Errorf("%d bytes of stack", n)
				}
			}
		})
	}
}

// TestSpillsScans: scans of few channels over many steps, and of many channels, do not spill in any
// pass.
func TestSpillsScans(t *testing.T) {
	c := hopper(t)
	spills := func(one *cell.Cell, pass string, size [3]int) {
		t.Run(fmt.Sprint(one, pass, size), func(t *testing.T) {
			t.Parallel()
			launches, texts, err := cuda.Sources(scanning(t, one, pass, size), nil, h200())
			if err != nil {
				t.Fatal(err)
			}
			last := len(launches) - 1
			if n := recorded(t, c, stackRecord, launches[last], texts[last]); n > 0 {
				t.Errorf("%d bytes of stack", n)
			}
		})
	}
	for _, one := range []*cell.Cell{cell.Linear, cell.GILR, cell.SRU, cell.QRNN, cell.LSLSTM.Core} {
		for _, hidden := range []int{16, 64, 512} {
			spills(one, "inference", [3]int{1, hidden, 1 << 24 / hidden})
		}
		for _, pass := range []string{"inference", "forward", "backward"} {
			spills(one, pass, [3]int{1, 8, 1 << 21})
			spills(one, pass, [3]int{1, 32, 1 << 19})
			spills(one, pass, [3]int{1, 128, 1 << 17})
			spills(one, pass, [3]int{1, 256, 1 << 16})
			spills(one, pass, [3]int{8, 256, 8192})
			spills(one, pass, [3]int{16, 256, 512})
			spills(one, pass, [3]int{16, 256, 4096})
			spills(one, pass, [3]int{64, 256, 1024})
		}
	}
}

// recorded returns what the image of a launch's kernel records.
func recorded(t *testing.T, c *nvrtc.Compiler, record int, launch *driver.Launch, text string) int {
	t.Helper()
	image, err := c.Compile(launch.Name, text)
	if err != nil {
		t.Fatal(err)
	}
	n, err := most(record, image)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// clustered returns the launch of a layer in clusters by default settings, and its text.
func clustered(t *testing.T, l devicetest.Layer) (*driver.Launch, string) {
	t.Helper()
	launches, texts := sources(t, l, nil)
	i := slices.IndexFunc(launches, func(l *driver.Launch) bool { return l.Cluster > 1 })
	if i < 0 {
		t.Fatal("no clusters")
	}
	return launches[i], texts[i]
}

// sources returns the launches of a layer on an H200 by default settings, and their texts.
func sources(t *testing.T, l devicetest.Layer, knobs knob.Params) ([]*driver.Launch, []string) {
	t.Helper()
	s, err := l.Schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	launches, texts, err := cuda.Sources(s, knobs, h200())
	if err != nil {
		t.Fatal(err)
	}
	return launches, texts
}

// TestSideBySide: if a batch needs more clusters than there are multiprocessors for, as many blocks
// fit one multiprocessor as the choice assumes. gru 256 at batch 16 in single precision took 1.13
// µs a step instead of 0.79 with eleven more registers.
func TestSideBySide(t *testing.T) {
	c := hopper(t)
	for _, l := range []devicetest.Layer{
		{Cell: cell.LSTM, Hidden: 128, Batch: 42},
		{Cell: cell.LSTM, Hidden: 128, Batch: 48, Train: true},
		{Cell: cell.GRU, Hidden: 128, Batch: 42, Train: true},
		{Cell: cell.RNNTanh, Hidden: 256, Batch: 96},
	} {
		l.Steps = 16
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			launch, text := clustered(t, l)
			n := recorded(t, c, registerRecord, launch, text)
			clusters, warps := launch.Grid[0]/launch.Cluster, launch.Block[0]/32
			blocks := 4 * (512 / ints.RoundUp(n, 8)) / warps // a quarter of a multiprocessor has 512 registers for each lane of a warp
			if blocks*h200().Clusters[launch.Cluster] < clusters {
				t.Errorf("%d registers of %d warps: %d blocks fit a multiprocessor, and so not all of %d clusters of %d run at a time", n, warps, blocks, clusters, launch.Cluster)
			}
		})
	}
}

// TestMeasuredFormsAreChosen: the configurations measured to be the fastest are chosen. Comments
// give µs per step of the recurrent part on an H200, and those of the earlier choice.
func TestMeasuredFormsAreChosen(t *testing.T) {
	for _, l := range []struct {
		cell          *cell.Cell
		hidden, batch int
		form          string
	}{
		{cell.LSTM, 128, 96, "wholerow 4×256"},  // 0.53, 0.67
		{cell.LSTM, 160, 32, "wholerow 8×160"},  // 0.49, 0.58
		{cell.LSTM, 192, 16, "simt 4×192"},      // 0.61, 0.97
		{cell.LSTM, 192, 32, "wholerow 8×192"},  // 0.54, 0.86
		{cell.LSTM, 256, 15, "simt 8×256"},      // 0.53; rows 0.54
		{cell.LSTM, 256, 28, "wholerow 16×128"}, // 0.54, 0.71
		{cell.GRU, 128, 96, "wholerow 4×256"},   // 0.55, 0.70
		{cell.GRU, 160, 32, "simt 7×96"},        // 0.59; 14×96 0.80
		{cell.GRU, 160, 48, "wholerow 8×160"},   // 0.53, 0.59 at 56
		{cell.GRU, 192, 32, "wholerow 8×192"},   // 0.56, 0.66
		{cell.GRU, 192, 64, "simt 2×384"},       // 0.94, 1.80
		{cell.GRU, 256, 16, "wholerow 16×128"},  // 0.58, 0.63
		{cell.GRU, 256, 36, "wholerow 8×256"},   // 0.69, 0.82 at 32
		{cell.GRU, 320, 8, "simt 16×160"},       // 0.74, 1.06
		{cell.RNNTanh, 512, 28, "simt 8×256"},   // 0.69, 0.83
	} {
		_, forms := cuda.Groupings(l.cell, l.hidden, l.batch, driver.Single, nil, h200())
		if len(forms) == 0 || !strings.HasPrefix(forms[0], l.form+" SPREAD = 0,") {
			t.Errorf("%v %d×%d: not %s but %.40s", l.cell, l.batch, l.hidden, l.form, forms[:min(1, len(forms))])
		}
	}
}

// trained are the layers whose training is compared with cuDNN, as gradients.
func trained() []devicetest.Layer {
	var all []devicetest.Layer
	for _, c := range []*cell.Cell{cell.LSTM, cell.GRU} {
		for _, precision := range []schedule.Precision{schedule.FP32, schedule.BF16} {
			for _, hidden := range []int{512, 1024} {
				for _, batch := range []int{1, 4, 16, 64} {
					all = append(all, devicetest.Layer{Cell: c, Hidden: hidden, Batch: batch, Steps: 256, Backward: true, Precision: precision})
				}
			}
		}
	}
	return all
}

// TestRowsFit: kernels whose warps multiply whole rows have registers for all of their weights
// wherever they are chosen.
func TestRowsFit(t *testing.T) {
	c := hopper(t)
	for i, l := range []devicetest.Layer{
		{Cell: cell.LSTM, Hidden: 256, Batch: 28},
		{Cell: cell.LSTM, Hidden: 256, Batch: 28, Train: true},
		{Cell: cell.GRU, Hidden: 256, Batch: 32},
		{Cell: cell.LSTMPeephole, Hidden: 304, Batch: 28},
		{Cell: cell.LSTM, Hidden: 320, Batch: 56, Precision: schedule.BF16},
		{Cell: cell.GRU, Hidden: 320, Batch: 56, Train: true, Precision: schedule.FP16},
	} {
		if testing.Short() && i%3 != 0 {
			continue
		}
		l.Steps = 16
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			launch, text := clustered(t, l)
			if !strings.Contains(text, "wholerow_layer(cell") {
				t.Fatal("not of whole rows")
			}
			if n := recorded(t, c, stackRecord, launch, text); n > 0 {
				t.Errorf("%d bytes of stack", n)
			}
		})
	}
}

// TestSpillsSplitFP16: the split-fp16 kernel does not spill.
func TestSpillsSplitFP16(t *testing.T) {
	c := hopper(t)
	hold := func(what string, s *schedule.Schedule) {
		launches, texts, err := cuda.Sources(s, knob.Params{"split": 3}, h200())
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range launches {
			if n := recorded(t, c, stackRecord, l, texts[i]); n > 0 {
				t.Errorf("%s: %s: %d bytes of stack", what, l.Name, n)
			}
		}
	}
	for _, c := range chains(t) {
		hold(c.name, c.schedule)
	}
	hold("runs", runs(t))
	for _, p := range []struct {
		m, n, k     int
		transA, row bool
	}{
		{m: 65536, n: 2312, k: 256, row: true}, {m: 16384, n: 256, k: 2312}, {m: 65536, n: 41, k: 1536}, {m: 65536, n: 1536, k: 41},
		{m: 2312, n: 256, k: 65536, transA: true}, {m: 1536, n: 41, k: 16384, transA: true}, {m: 512, n: 128, k: 4096, transA: true},
	} {
		b := schedule.NewBuilder(1)
		op := schedule.Gemm{A: b.Matrix("a", p.m, p.k).All(), TransA: p.transA, B: b.Matrix("b", p.k, p.n).All(), C: b.Matrix("c", p.m, p.n).All()}
		if p.transA {
			op.A = b.Matrix("aᵀ", p.k, p.m).All()
		}
		if b.Do(0, op); p.row {
			b.Do(0, schedule.Map{Op: cell.Add, Out: op.C, A: op.C, B: b.Matrix("row", 1, p.n).All()})
		}
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		hold(fmt.Sprintf("%+v", p), s)
	}
}
