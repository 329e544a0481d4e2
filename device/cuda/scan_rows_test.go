package cuda_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A rowScan is a scan of unaligned rows, with knobs for how they are written.
type rowScan struct {
	cell      *cell.Cell
	size      [3]int // steps, batch, hidden
	precision schedule.Precision
	sms       int // of the emulated GPU
	knobs     string
}

// rowScans have each knob, in tiles that blocks draw and in teams, with and without groups, in each
// precision.
var rowScans = []rowScan{
	{cell.Linear, [3]int{131, 3, 101}, schedule.FP32, 2, "scanlanes=32:scancut=32"},
	{cell.GILR, [3]int{605, 3, 77}, schedule.FP32, 29, "scanlanes=32:scancut=32"},
	{cell.MinGRU, [3]int{133, 3, 173}, schedule.FP32, 2, "scanlanes=128:scancut=128"},
	{cell.SRU, [3]int{605, 3, 35}, schedule.BF16, 13, "scanlanes=32:scancut=32"},
	{cell.RGLRU.Scanned, [3]int{75, 5, 101}, schedule.FP32, 2, "scanlanes=64:scancut=32"},
	{cell.Linear, [3]int{131, 5, 77}, schedule.FP32, 2, "scanlanes=128"},
	{cell.Linear, [3]int{1500, 1, 37}, schedule.FP32, 57, "scanlanes=32:scancut=32"},
	{cell.GILR, [3]int{91, 2, 333}, schedule.FP32, 2, "scanlanes=128:scancut=64"},
	{cell.SRU, [3]int{133, 3, 101}, schedule.FP16, 2, "scanlanes=64:scancut=32"},
	{cell.SRU, [3]int{131, 3, 51}, schedule.FP32, 1, "scanlanes=64"},
	{cell.MinGRU, [3]int{901, 3, 77}, schedule.FP32, 19, "scanlanes=32:scancut=32"},
	{cell.RGLRU.Scanned, [3]int{601, 5, 101}, schedule.FP32, 41, "scanlanes=32:scancut=32"},
	{cell.QRNN, [3]int{133, 5, 70}, schedule.BF16, 2, "scanlanes=128"},
	{cell.LSLSTM.Core, [3]int{61, 11, 75}, schedule.FP32, 2, "scanlanes=64:scancut=64"},
	{cell.RGLRU.Scanned, [3]int{133, 5, 147}, schedule.FP32, 2, "scanlanes=128"}, // rows of three warps
	{cell.Linear, [3]int{67, 9, 77}, schedule.FP32, 1, "scanlanes=128"},
	{cell.Linear, [3]int{133, 7, 43}, schedule.BF16, 2, "scanlanes=128"},
	{cell.GILR, [3]int{133, 3, 145}, schedule.FP32, 2, "scanlanes=128:scancut=32"},
	{cell.GILR, [3]int{33, 17, 19}, schedule.FP32, 2, "scanlanes=64"},
	{cell.Linear, [3]int{61, 3, 301}, schedule.BF16, 2, "scanlanes=128:scancut=128"},
	{cell.Linear, [3]int{2051, 3, 7}, schedule.FP32, 5, "scanlanes=32"},
	{cell.GILR, [3]int{1033, 3, 7}, schedule.FP32, 5, "scanlanes=32:scancut=32"},
	{cell.SRU, [3]int{2003, 1, 5}, schedule.BF16, 3, "scanlanes=32:scancut=128"},
	// Tiles of whole rows, with one thread per channel and several, with and without idle threads,
	// with more than 256 threads, and with more tiles than have words of their own.
	{cell.Linear, [3]int{901, 3, 77}, schedule.FP32, 7, "scanlanes=512"},
	{cell.GILR, [3]int{1033, 5, 29}, schedule.FP32, 3, "scanlanes=512"},
	{cell.SRU, [3]int{2003, 1, 45}, schedule.BF16, 3, "scanlanes=512"},
	{cell.MinGRU, [3]int{701, 1, 229}, schedule.FP32, 5, "scanlanes=512"},
	{cell.RGLRU.Scanned, [3]int{611, 5, 100}, schedule.FP32, 7, "scanlanes=512"},
	{cell.Linear, [3]int{3001, 1, 37}, schedule.FP16, 2, "scanlanes=512"},
	{cell.QRNN, [3]int{523, 17, 19}, schedule.FP32, 6, "scanlanes=512"},
	{cell.LSLSTM.Core, [3]int{801, 3, 33}, schedule.FP32, 4, "scanlanes=512"},
	// Chains of one sequence's channels, with as many blocks as chains and more.
	{cell.Linear, [3]int{605, 1, 549}, schedule.FP32, 7, "scanlanes=256:scancut=32"},
	{cell.GILR, [3]int{523, 2, 333}, schedule.FP32, 9, "scanlanes=256:scancut=32"},
	{cell.SRU, [3]int{517, 1, 257}, schedule.BF16, 5, "scanlanes=256:scancut=32"},
	{cell.RGLRU.Scanned, [3]int{601, 2, 301}, schedule.FP32, 12, "scanlanes=256:scancut=64"},
}

// smallScans have one tile per chain.
var smallScans = []rowScan{
	{cell.GILR, [3]int{130, 3, 77}, schedule.FP32, 41, "scansmall=2"},
	{cell.SRU, [3]int{65, 2, 64}, schedule.BF16, 29, "scansmall=2"},
	{cell.Linear, [3]int{300, 1, 16}, schedule.FP32, 5, "scansmall=2"},
	{cell.MinGRU, [3]int{2, 1, 1}, schedule.FP32, 2, "scansmall=2"},
	{cell.RGLRU.Scanned, [3]int{129, 16, 24}, schedule.FP32, 60, "scansmall=2"},
	{cell.LSLSTM.Core, [3]int{31, 3, 18}, schedule.FP16, 12, "scansmall=2"},
	{cell.Linear, [3]int{605, 3, 35}, schedule.FP32, 13, "scansmall=1"},
	{cell.GILR, [3]int{131, 50, 4}, schedule.FP32, 2, "scansmall=1"},
}

// TestScanRows holds the ways to write unaligned rows, and small scans, to their meaning.
func TestScanRows(t *testing.T) {
	for _, test := range append(sample(rowScans, 4), sample(smallScans, 4)...) {
		t.Run(fmt.Sprint(test.cell, test.size, test.precision, test.knobs), func(t *testing.T) {
			compiler, driver := emulation(t, test.sms)
			d := cuda.New(driver, compiler, "")
			defer d.Close()
			k, err := knob.Parse(test.knobs)
			if err != nil {
				t.Fatal(err)
			}
			for _, train := range []bool{false, true} {
				s, _, _ := scans(t, test.cell, test.size[0], test.size[1], test.size[2], train)
				_, texts, err := cuda.Sources(s, k, driver.Properties())
				if err != nil {
					t.Fatal(err)
				}
				for name, word := range map[string]string{"scancut": cutWord(k, texts[0]), "scansmall": "begin_next();\n"} {
					if (k[name] > 0) != strings.Contains(entry(texts[0]), word) {
						t.Errorf("%s=%d and the kernel has %q: %v", name, k[name], word, k[name] == 0)
					}
				}
				for _, c := range cuts(t, s, k, driver.Properties()) {
					if k["scanlanes"] > 32 && (c.lanes <= 32 || c.lanes > k["scanlanes"]) || k["scansmall"] == 2 && c.tiles > 1 {
						t.Errorf("training: %v: %+v", train, c)
					}
				}
				devicetest.HoldScanWith(t, d, test.cell, test.size, test.precision, train, k)
			}
		})
	}
}

// cutWord is a word in the text of kernels that cut at multiples of bytes: stretches, or pieces of
// chains.
func cutWord(k knob.Params, text string) string {
	if strings.Contains(entry(text), "write_stretch<") {
		return fmt.Sprintf("write_stretch<%d>", max(1, k["scancut"]))
	}
	return "&& owns<"
}

// entry returns a kernel's own text.
func entry(text string) string {
	_, kernel, _ := strings.Cut(text, "DYNAMIC_SHARED(")
	return kernel
}

// TestScanRowsDeclined: a setting that a scan cannot follow is declined.
func TestScanRowsDeclined(t *testing.T) {
	before := h200()
	before.Capability, before.Hopper = 80, false
	for _, test := range []struct {
		size   [3]int // steps, batch, hidden
		knobs  knob.Params
		before bool
		reason string // "": it is taken
	}{
		{[3]int{1009, 33, 501}, knob.Params{"scanlanes": 128, "scancut": 128}, false, ""},
		{[3]int{1009, 33, 501}, knob.Params{"scanlanes": 128}, true, "capability 9.0"},
		{[3]int{1009, 33, 501}, knob.Params{"scanlanes": 48}, false, "it is 0, 32, 64, 128, 256 or 512"},
		{[3]int{1009, 33, 501}, knob.Params{"scanlanes": 512}, false, "it is for 33 to 512 channels"},
		{[3]int{100003, 1, 256}, knob.Params{"scanlanes": 512}, false, "whose rows are not aligned to 16 bytes"},
		{[3]int{1009, 3, 77}, knob.Params{"scanlanes": 512}, false, ""},
		{[3]int{1009, 3, 77}, knob.Params{"scanlanes": 256}, false, "sequences of more than 256 channels"},
		{[3]int{1009, 3, 777}, knob.Params{"scanlanes": 256}, false, ""},
		{[3]int{100003, 3, 77}, knob.Params{"scanlanes": 512, "scancut": 32}, false, "rows of the chain are longer than a line"},
		{[3]int{1009, 33, 501}, knob.Params{"scanlanes": 32, "scancut": 128}, false, "chains of 32 channels have no room"},
		{[3]int{1009, 33, 512}, knob.Params{"scancut": 32}, false, "whose rows are not aligned to 16 bytes"},
		{[3]int{1009, 401, 51}, knob.Params{"scanlanes": 64, "scancut": 32}, false, "a chain has all channels"},
		{[3]int{100003, 3, 77}, knob.Params{"scanlanes": 64}, false, "has chains of 32 at most"},
		{[3]int{100003, 3, 77}, knob.Params{"scansmall": 2}, false, "no tile has room"},
		{[3]int{301, 3, 77}, knob.Params{"scansmall": 2}, false, ""},
		{[3]int{200003, 2, 5}, knob.Params{"scancut": 128}, false, ""},
		{[3]int{1009, 33, 501}, knob.Params{"scancut": 16}, false, ""},
		{[3]int{1009, 33, 501}, knob.Params{"scancut": 48}, false, "it is 0, 16, 32, 64 or 128"},
	} {
		s, _, _ := scans(t, cell.Linear, test.size[0], test.size[1], test.size[2], false)
		p := h200()
		if test.before {
			p = before
		}
		_, _, err := cuda.Sources(s, test.knobs, p)
		if test.reason == "" && err != nil || test.reason != "" && (!errors.Is(err, schedule.ErrKnob) || !strings.Contains(err.Error(), test.reason)) {
			t.Errorf("%v %v: %v, want %q", test.size, test.knobs, err, test.reason)
		}
	}
}

// TestSpillsScanRows: the registers of these forms suffice, too.
func TestSpillsScanRows(t *testing.T) {
	c := hopper(t)
	for _, test := range sample([]struct {
		cell  *cell.Cell
		size  [3]int // batch, hidden, steps
		knobs string
	}{
		{cell.Linear, [3]int{33, 501, 1009}, "scanlanes=128:scancut=128"},
		{cell.GILR, [3]int{3, 77, 100003}, "scancut=32"},
		{cell.SRU, [3]int{33, 501, 1009}, "scanlanes=64:scancut=32"},
		{cell.SRU, [3]int{1, 229, 65521}, "scancut=32"},
		{cell.GILR, [3]int{64, 64, 80}, "scansmall=2"},
		{cell.MinGRU, [3]int{129, 1023, 127}, "scanlanes=128:scancut=64"},
		{cell.SRU, [3]int{2, 5, 2097151}, "scancut=128"},
		{cell.Linear, [3]int{3, 77, 100003}, "scanlanes=512"},
		{cell.SRU, [3]int{1, 229, 65521}, "scanlanes=512"},
		{cell.GILR, [3]int{5, 100, 30011}, "scanlanes=512"},
		{cell.LSLSTM.Core, [3]int{17, 19, 40009}, "scanlanes=512"},
		{cell.GILR, [3]int{7, 333, 2999}, "scanlanes=256"},
	}, 2) {
		for _, pass := range []string{"inference", "forward", "backward"} {
			t.Run(fmt.Sprint(test.cell, test.size, test.knobs, pass), func(t *testing.T) {
				t.Parallel()
				k, err := knob.Parse(test.knobs)
				if err != nil {
					t.Fatal(err)
				}
				launches, texts, err := cuda.Sources(scanning(t, test.cell, pass, test.size), k, h200())
				if err != nil {
					t.Fatal(err)
				}
				last := len(launches) - 1
				if n := recorded(t, c, stackRecord, launches[last], texts[last]); n > 0 {
					t.Errorf("%d bytes of stack", n)
				}
			})
		}
	}
}

// TestScanRowsDefaults: large scans of unaligned rows have wide chains, and those that keep values
// end at sectors.
func TestScanRowsDefaults(t *testing.T) {
	for _, test := range []struct {
		size  [3]int // steps, batch, hidden
		lanes int
		owns  [3]bool // in inference, forward in training, and backward
	}{
		{[3]int{1009, 33, 501}, 128, [3]bool{false, true, false}},
		{[3]int{1003, 401, 51}, 128, [3]bool{}},
		{[3]int{1201, 4096, 3}, 128, [3]bool{}},
		{[3]int{100003, 3, 77}, 32, [3]bool{false, true, true}}, // teams
		{[3]int{400009, 1, 37}, 32, [3]bool{}},
		{[3]int{133, 33, 101}, 32, [3]bool{}}, // which stays in the L2
	} {
		for _, train := range []bool{false, true} {
			s, _, _ := scans(t, cell.Linear, test.size[0], test.size[1], test.size[2], train)
			_, texts, err := cuda.Sources(s, nil, h200())
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range cuts(t, s, nil, h200()) {
				owns := strings.Contains(entry(texts[i]), "&& owns<")
				if train {
					i++
				}
				if c.lanes != test.lanes || owns != test.owns[i] {
					t.Errorf("%v, scan %d: whole sectors: %v, %+v", test.size, i, owns, c)
				}
			}
		}
	}
}
