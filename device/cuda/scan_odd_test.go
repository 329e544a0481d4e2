package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"rnnbench/device/cuda"
	"rnnbench/device/devicetest"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// An oddScan is a scan of unaligned rows.
type oddScan struct {
	cell      *cell.Cell
	size      [3]int // steps, batch, hidden
	precision schedule.Precision
	sms       int       // of the emulated GPU
	kinds     [3]string // in inference, forward in training, and backward
}

// oddScans have each cell, each precision, one sequence and several, whole rows of memory and
// parts.
var oddScans = []oddScan{
	{cell.Linear, [3]int{2051, 3, 7}, schedule.FP32, 5, [3]string{"alone", "alone", "groups"}},
	{cell.GILR, [3]int{131, 50, 3}, schedule.FP32, 2, [3]string{"tiles", "tiles", "tiles"}},
	{cell.SRU, [3]int{605, 3, 35}, schedule.FP32, 13, [3]string{"alone", "alone", "groups"}},
	{cell.QRNN, [3]int{300, 1, 77}, schedule.FP32, 2, [3]string{"tiles", "tiles", "tiles"}},
	{cell.LSLSTM.Core, [3]int{601, 2, 33}, schedule.BF16, 9, [3]string{"alone", "alone", "groups"}},
	{cell.Linear, [3]int{9203, 1, 1}, schedule.FP32, 5, [3]string{"alone", "alone", "groups"}},
	{cell.Linear, [3]int{901, 3, 77}, schedule.FP32, 19, [3]string{"alone", "alone", "groups"}},
	{cell.GILR, [3]int{601, 5, 100}, schedule.FP32, 41, [3]string{"alone", "alone", "groups"}},
	{cell.SRU, [3]int{1111, 2, 5}, schedule.FP32, 5, [3]string{"alone", "alone", "groups"}},
	{cell.QRNN, [3]int{605, 1, 333}, schedule.FP32, 23, [3]string{"alone", "rows", "groups"}},
	{cell.LSLSTM.Core, [3]int{603, 1, 61}, schedule.FP32, 5, [3]string{"alone", "alone", "groups"}},
	{cell.LSLSTM.Core, [3]int{1033, 1, 3}, schedule.FP32, 3, [3]string{"alone", "alone", "groups"}},
	{cell.GILR, [3]int{611, 23, 3}, schedule.FP32, 7, [3]string{"alone", "alone", "groups"}},
	{cell.QRNN, [3]int{611, 31, 2}, schedule.FP32, 7, [3]string{"alone", "alone", "groups"}},
	{cell.Linear, [3]int{9001, 1, 31}, schedule.FP32, 41, [3]string{"groups", "groups", "groups"}},
	{cell.GILR, [3]int{2057, 1, 5}, schedule.BF16, 5, [3]string{"alone", "alone", "groups"}},
	{cell.SRU, [3]int{707, 3, 37}, schedule.BF16, 13, [3]string{"alone", "alone", "groups"}},
	{cell.QRNN, [3]int{709, 12, 3}, schedule.BF16, 5, [3]string{"alone", "alone", "groups"}},
	{cell.LSLSTM.Core, [3]int{2003, 1, 7}, schedule.FP16, 3, [3]string{"alone", "alone", "groups"}},
	{cell.Linear, [3]int{501, 7, 333}, schedule.FP32, 5, [3]string{"tiles", "tiles", "tiles"}},
	{cell.SRU, [3]int{133, 3, 101}, schedule.FP32, 2, [3]string{"tiles", "tiles", "tiles"}},
	{cell.LSLSTM.Core, [3]int{61, 11, 35}, schedule.FP32, 2, [3]string{"tiles", "tiles", "tiles"}},
	{cell.Linear, [3]int{1500, 1, 3}, schedule.FP32, 29, [3]string{"tiles", "tiles", "tiles"}}, // with walkers
	{cell.GILR, [3]int{501, 3, 71}, schedule.BF16, 2, [3]string{"tiles", "tiles", "tiles"}},
	{cell.SRU, [3]int{263, 13, 3}, schedule.FP16, 1, [3]string{"tiles", "tiles", "tiles"}},
}

// TestScanOdd holds scans of unaligned rows to their meaning. The copy engine copies their tiles.
func TestScanOdd(t *testing.T) {
	for _, test := range sample(oddScans, 9) {
		t.Run(fmt.Sprint(test.cell, test.size, test.precision), func(t *testing.T) {
			compiler, driver := emulation(t, test.sms)
			d := cuda.New(driver, compiler, "")
			defer d.Close()
			for _, train := range []bool{false, true} {
				s, _, _ := scans(t, test.cell, test.size[0], test.size[1], test.size[2], train)
				_, texts, err := cuda.Sources(s, nil, driver.Properties())
				if err != nil {
					t.Fatal(err)
				}
				for i, c := range cuts(t, s, nil, driver.Properties()) {
					if train {
						i++
					}
					if c.kind != test.kinds[i] {
						t.Errorf("scan %d, training: %v: %+v, want %s", i, train, c, test.kinds[i])
					}
				}
				for _, text := range texts {
					if _, kernel, _ := strings.Cut(text, "DYNAMIC_SHARED("); !strings.Contains(kernel, "tensor_load(") && !strings.Contains(kernel, "read_bulk(") {
						t.Error("the copy engine brings nothing")
					}
				}
				devicetest.HoldScan(t, d, test.cell, test.size, test.precision, train)
			}
		})
	}
}

// withinScans begin at a step of their matrices whose address is no multiple of 16 bytes. The
// gradients of a surrogate's states do, and so do blocks of time.
var withinScans = []struct {
	oddScan
	ahead int
	knobs knob.Params
}{
	{oddScan{cell.LSLSTM.Surrogate, [3]int{605, 3, 35}, schedule.FP32, 13, [3]string{}}, 1, nil},
	{oddScan{cell.LSLSTM.Core, [3]int{1033, 1, 9}, schedule.FP32, 3, [3]string{}}, 3, nil},
	{oddScan{cell.Linear, [3]int{2051, 3, 7}, schedule.FP32, 5, [3]string{}}, 2, nil},
	{oddScan{cell.LSLSTM.Surrogate, [3]int{131, 50, 3}, schedule.FP32, 2, [3]string{}}, 1, nil},
	{oddScan{cell.SRU, [3]int{133, 3, 101}, schedule.FP32, 2, [3]string{}}, 7, nil},
	{oddScan{cell.GILR, [3]int{2057, 1, 5}, schedule.BF16, 5, [3]string{}}, 5, nil},
	{oddScan{cell.QRNN, [3]int{300, 1, 77}, schedule.FP16, 2, [3]string{}}, 6, nil},
	{oddScan{cell.GILR, [3]int{611, 23, 3}, schedule.FP32, 7, [3]string{}}, 1, nil},
	{oddScan{cell.LSLSTM.Core, [3]int{601, 2, 33}, schedule.BF16, 9, [3]string{}}, 2, nil},
	{oddScan{cell.GILR, [3]int{801, 3, 33}, schedule.FP32, 4, [3]string{}}, 1, knob.Params{"scanlanes": 512}},
	{oddScan{cell.LSLSTM.Core, [3]int{601, 1, 61}, schedule.FP32, 4, [3]string{}}, 1, knob.Params{"scanlanes": 512}},
}

// TestScanWithin holds them to their meaning.
func TestScanWithin(t *testing.T) {
	for _, test := range sample(withinScans, 4) {
		t.Run(fmt.Sprint(test.cell, test.size, test.precision, test.ahead), func(t *testing.T) {
			compiler, driver := emulation(t, test.sms)
			d := cuda.New(driver, compiler, "")
			defer d.Close()
			devicetest.HoldScanWithin(t, d, test.cell, test.size, test.precision, false, test.knobs, test.ahead)
			devicetest.HoldScanWithin(t, d, test.cell, test.size, test.precision, true, test.knobs, test.ahead)
		})
	}
}

// TestScanSurrogate: the copy engine copies all tiles of an ls-lstm with any number of channels and
// sequences. The gradient of a surrogate's states begins one step after the first row of its
// matrix.
func TestScanSurrogate(t *testing.T) {
	for _, size := range [][3]int{{1, 9, 139119}, {3, 47, 6325}, {5, 77, 2837}, {17, 147, 2715}, {9, 379, 273}, {2, 1, 100003}} {
		p := rnn.Problem{Cell: cell.LSLSTM, Input: 1, Hidden: size[1], Layers: 1, Batch: size[0], Steps: size[2], Pass: rnn.Train}
		_, s, err := rnn.Layout(impl.Lookup("scan"), p, knob.Params{"inputbatch": 0})
		if err != nil {
			t.Fatal(err)
		}
		launches, texts, err := cuda.Sources(s, nil, h200())
		if err != nil {
			t.Fatal(err)
		}
		scans := 0
		for i, l := range launches {
			if !strings.HasPrefix(l.Name, "scan") {
				continue
			}
			scans++
			if _, kernel, _ := strings.Cut(texts[i], "DYNAMIC_SHARED("); !strings.Contains(kernel, "tensor_load(") && !strings.Contains(kernel, "read_bulk(") {
				t.Errorf("%v: %s: the copy engine brings nothing", size, l.Name)
			}
		}
		if scans != 4 {
			t.Errorf("%v: %d scans, want two of each pass", size, scans)
		}
	}
}

// TestScanLarge: matrices of 2³¹ and more elements are divided like others, though the copy
// engine's numbers have 32 bits.
func TestScanLarge(t *testing.T) {
	for _, size := range [][3]int{{1 << 30, 1, 4}, {200003, 4096, 3}, {1000003, 3, 1077}, {50, 4099, 12347}} {
		covered(t, cell.Linear, size[0], size[1], size[2], h200())
		s, _, _ := scans(t, cell.GILR, size[0], size[1], size[2], true)
		launches, texts, err := cuda.Sources(s, nil, h200())
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range launches {
			for _, m := range l.Tensors {
				if m.Sizes[0] >= 1<<31 || m.Sizes[2] >= 1<<31 || m.Strides[1] >= 1<<40 || m.Box[0] > 256 || m.Box[2] > 256 {
					t.Errorf("%s: sizes %v, strides %v, boxes %v", l.Name, m.Sizes, m.Strides, m.Box)
				}
			}
			for _, line := range strings.Split(texts[i], "\n") {
				if strings.Contains(line, "* batch * ld_") && strings.Count(line, "(long long)") < strings.Count(line, "* batch * ld_") {
					t.Errorf("%s: 32 bits: %s", l.Name, line)
				}
			}
		}
	}
	s, _, _ := scans(t, cell.Linear, math.MaxInt32-1, 1, 1, false)
	if _, _, err := cuda.Sources(s, nil, h200()); !errors.Is(err, schedule.ErrUnsupported) {
		t.Errorf("too many steps: %v", err)
	}
}

// TestGPUScanOdd is the same on a GPU, at larger sizes.
func TestGPUScanOdd(t *testing.T) {
	d := openGPU(t, time.Minute)
	cells, precisions := []*cell.Cell{cell.Linear, cell.GILR, cell.SRU, cell.QRNN, cell.LSLSTM.Core}, []schedule.Precision{schedule.FP32, schedule.BF16, schedule.FP16}
	for i, size := range [][3]int{ // steps, batch, hidden
		{9001, 3, 77}, {100003, 2, 5}, {300011, 1, 1}, {4003, 5, 100}, {1001, 7, 333}, {12011, 1, 37}, {701, 1, 229}, {333, 33, 101},
		{49, 4096, 3}, {77, 129, 51}, {4001, 17, 19}, {10091, 11, 3}, {9991, 3, 65}, {60, 5, 7},
	} {
		t.Run(fmt.Sprintf("%dx%dx%d", size[1], size[2], size[0]), func(t *testing.T) {
			for k, c := range cells {
				for n, precision := range precisions {
					if short := k == i%len(cells) && n == 0 || k == (i+1)%len(cells) && n == 1; !short && testing.Short() {
						continue
					}
					devicetest.HoldScan(t, d, c, size, precision, false)
					devicetest.HoldScan(t, d, c, size, precision, true)
				}
			}
		})
	}
}

// TestGPUScanWithin is TestScanWithin on a GPU, at larger sizes.
func TestGPUScanWithin(t *testing.T) {
	d := openGPU(t, time.Minute)
	for i, size := range [][3]int{ // steps, batch, hidden
		{2003, 3, 77}, {20003, 1, 9}, {1003, 5, 100}, {133, 9, 379}, {2003, 3, 47}, {1001, 17, 19}, {133, 17, 147}, {3091, 11, 3}, {4011, 1, 37}, {10011, 2, 5},
	} {
		for k, c := range []*cell.Cell{cell.LSLSTM.Surrogate, cell.LSLSTM.Core, cell.Linear, cell.SRU} {
			if k > 0 && k != 1+i%3 && testing.Short() {
				continue
			}
			precision := []schedule.Precision{schedule.FP32, schedule.FP32, schedule.BF16, schedule.FP16}[i%4]
			t.Run(fmt.Sprint(c, size, precision), func(t *testing.T) {
				devicetest.HoldScanWithin(t, d, c, size, precision, false, nil, 1+i%3)
				devicetest.HoldScanWithin(t, d, c, size, precision, true, nil, 1+i%3)
			})
		}
	}
}
