package cuda_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestGPUScanRows holds the ways to write unaligned rows, and small scans, to their meaning on a
// GPU.
func TestGPUScanRows(t *testing.T) {
	d := openGPU(t, time.Minute)
	for _, test := range []rowScan{
		{cell.Linear, [3]int{5001, 3, 77}, schedule.FP32, 0, "scancut=32"},
		{cell.GILR, [3]int{2003, 5, 100}, schedule.FP32, 0, "scancut=32"},
		{cell.SRU, [3]int{701, 1, 229}, schedule.FP32, 0, "scancut=32"},
		{cell.MinGRU, [3]int{1001, 3, 65}, schedule.BF16, 0, "scancut=32"},
		{cell.Linear, [3]int{301, 7, 333}, schedule.FP32, 0, "scancut=32"},
		{cell.GILR, [3]int{133, 33, 101}, schedule.FP32, 0, "scanlanes=128"},
		{cell.MinGRU, [3]int{133, 33, 301}, schedule.FP32, 0, "scanlanes=128:scancut=32"},
		{cell.RGLRU.Scanned, [3]int{67, 67, 223}, schedule.FP32, 0, "scanlanes=128:scancut=128"},
		{cell.Linear, [3]int{67, 67, 223}, schedule.BF16, 0, "scanlanes=128:scancut=64"},
		{cell.RGLRU.Scanned, [3]int{1001, 17, 147}, schedule.FP32, 0, "scanlanes=128"}, // rows of three warps
		{cell.Linear, [3]int{133, 129, 77}, schedule.FP32, 0, "scanlanes=128"},
		{cell.SRU, [3]int{133, 33, 101}, schedule.FP16, 0, "scanlanes=64:scancut=32"},
		{cell.Linear, [3]int{67, 401, 51}, schedule.FP32, 0, "scanlanes=128"},
		{cell.GILR, [3]int{20003, 2, 5}, schedule.FP32, 0, "scancut=128"},
		{cell.Linear, [3]int{128, 1, 256}, schedule.FP32, 0, "scansmall=2"},
		{cell.GILR, [3]int{64, 16, 256}, schedule.FP32, 0, "scansmall=2"},
		{cell.SRU, [3]int{201, 3, 77}, schedule.BF16, 0, "scansmall=2"},
		{cell.RGLRU.Scanned, [3]int{50, 33, 101}, schedule.FP32, 0, "scansmall=2"},
		{cell.Linear, [3]int{512, 8, 64}, schedule.FP32, 0, "scansmall=1"},
	} {
		t.Run(fmt.Sprint(test.cell, test.size, test.precision, test.knobs), func(t *testing.T) {
			k, err := knob.Parse(test.knobs)
			if err != nil {
				t.Fatal(err)
			}
			devicetest.HoldScanWith(t, d, test.cell, test.size, test.precision, false, k)
			devicetest.HoldScanWith(t, d, test.cell, test.size, test.precision, true, k)
		})
	}
}

// rowForms are the ways to write unaligned rows.
var rowForms = []string{
	"", "scancut=16", "scanlanes=32:scancut=16", "scancut=32", "scancut=128", "scanlanes=64", "scanlanes=64:scancut=32",
	"scanlanes=128", "scanlanes=128:scancut=32", "scanlanes=128:scancut=128",
}

// BenchmarkGPUScanRows times these, alternating with a copy of as many bytes. Sizes with aligned
// rows run without such settings.
func BenchmarkGPUScanRows(b *testing.B) {
	type timed struct {
		cell      *cell.Cell
		precision schedule.Precision
		size      [3]int
		name      string
		schedule  *schedule.Schedule
		forms     []string
	}
	var all, passes []timed
	for _, size := range slices.Concat(oddSizes, scanSizes[:3]) {
		all = append(all, timed{cell: cell.Linear, size: size})
	}
	for _, size := range [][3]int{oddSizes[0], oddSizes[8], oddSizes[9]} {
		all = append(all, timed{cell: cell.GILR, size: size}, timed{cell: cell.Linear, precision: schedule.BF16, size: size})
	}
	d := openGPU(b, time.Minute)
	for _, test := range all {
		for _, pass := range []string{"inference", "forward", "backward"} {
			test.name = fmt.Sprintf("%s-%v/%s/%dx%dx%d", test.cell.Name, test.precision, pass, test.size[0], test.size[1], test.size[2])
			test.schedule = scanningTimes(b, test.cell, pass, test.size, test.precision, 1)
			test.forms = taken(test.schedule, rowForms)
			for _, form := range test.forms {
				d.Precompile(test.schedule, with(form))
			}
			passes = append(passes, test)
		}
	}
	for _, test := range passes {
		b.Run(test.name, func(b *testing.B) { formRates(b, d, test.schedule, test.size, 1, test.forms) })
	}
}

// BenchmarkGPUScanSmallForms times small scans, eight one after the other, and a copy of as many bytes.
func BenchmarkGPUScanSmallForms(b *testing.B) {
	d := openGPU(b, time.Minute)
	const times = 8
	for _, size := range smallSizes {
		for _, pass := range []string{"inference", "backward"} {
			s := scanningTimes(b, cell.Linear, pass, size, schedule.FP32, times)
			forms := taken(s, []string{"", "scansmall=1", "scansmall=2"})
			b.Run(fmt.Sprintf("linear/%s/%dx%dx%d", pass, size[0], size[1], size[2]), func(b *testing.B) {
				formRates(b, d, s, size, times, forms)
			})
		}
	}
}

// with returns a form's knobs, with a graph.
func with(form string) knob.Params {
	k, err := knob.Parse(form)
	if err != nil {
		panic(err)
	}
	out := knob.Params{"graph": 1}
	maps.Copy(out, k)
	return out
}

// taken returns the forms that s can have on a large GPU.
func taken(s *schedule.Schedule, forms []string) []string {
	return slices.DeleteFunc(slices.Clone(forms), func(form string) bool {
		_, _, err := cuda.Sources(s, with(form), h200())
		return errors.Is(err, schedule.ErrUnsupported)
	})
}

// formRates reports the times of forms of s, which is several scans of a size, alternating with
// copies of as many bytes in single precision. It reports the least sample, in % of a copy; for the
// first form and the copy, also in µs per scan.
func formRates(b *testing.B, d device.Device, s *schedule.Schedule, size [3]int, times int, forms []string) {
	bytes := float64(cuda.Moved(s.Nodes[0].Op)) * float64(size[0]) * float64(size[1]) * float64(size[2])
	runs := min(512, max(2, int(4e9/bytes)/times))
	copied := scanCopies(b, int64(bytes), times)
	names, least := append([]string{"copy"}, forms...), map[string]float64{}
	progs := map[string]device.Program{}
	for i, name := range names {
		of, k := s, with("")
		if i == 0 {
			of = copied
		} else {
			k = with(name)
		}
		prog, err := d.Compile(of, k)
		if err != nil {
			b.Fatalf("%s: %v", name, err)
		}
		defer prog.Close()
		if err := prog.Prepare(); err != nil {
			b.Fatalf("%s: %v", name, err)
		}
		if _, err := prog.Run(1); err != nil {
			b.Fatalf("%s: %v", name, err)
		}
		progs[name] = prog
	}
	for b.Loop() {
		for _, name := range names {
			sample, err := progs[name].Run(runs)
			if err != nil {
				b.Fatalf("%s: %v", name, err)
			}
			if t := sample.Device.Seconds() / float64(runs*times); least[name] == 0 || t < least[name] {
				least[name] = t
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(least["copy"]*1e6, "µs-copy")
	for i, form := range forms {
		name := strings.NewReplacer("scan", "", "=", "", ":", "+").Replace(form)
		if i == 0 {
			name = "0"
			b.ReportMetric(least[form]*1e6, "µs")
		}
		b.ReportMetric(100*least["copy"]/least[form], "%"+name)
	}
}

// scanCopies returns so many copies that read and write so many bytes each.
func scanCopies(t testing.TB, bytes int64, times int) *schedule.Schedule {
	b := schedule.NewBuilder(1)
	cols := 1024
	if bytes < 1<<20 {
		cols = 128
	}
	rows := max(1, int(bytes/int64(2*4*cols)))
	to, from := b.Matrix("to", rows, cols).All(), b.Matrix("from", rows, cols).All()
	for range times {
		b.Do(0, schedule.Map{Op: cell.Copy, Out: to, A: from})
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wholeRows are sizes whose tiles may be whole rows, of all sequences or of one.
var wholeRows = []struct {
	size [3]int // batch, channels and steps
	form string
}{
	{[3]int{3, 77, 100003}, "scanlanes=512"}, {[3]int{5, 100, 30011}, "scanlanes=512"}, {[3]int{1, 229, 65521}, "scanlanes=512"},
	{[3]int{17, 19, 40009}, "scanlanes=512"}, {[3]int{1, 37, 400009}, "scanlanes=512"}, {[3]int{51, 9, 30011}, "scanlanes=512"},
	{[3]int{7, 333, 2999}, "scanlanes=256"}, {[3]int{1, 549, 30011}, "scanlanes=256"}, {[3]int{3, 847, 7001}, "scanlanes=256"},
	{[3]int{3, 129, 40009}, "scanlanes=512"}, {[3]int{1, 61, 300007}, "scanlanes=512"}, {[3]int{1, 505, 30011}, "scanlanes=512"},
	{[3]int{23, 7, 100003}, "scanlanes=512"}, {[3]int{1, 1597, 9001}, "scanlanes=256"}, {[3]int{5, 307, 10007}, "scanlanes=256"},
}

// BenchmarkGPUScanWholeRows times these, alternating with the default form and a copy.
func BenchmarkGPUScanWholeRows(b *testing.B) {
	d := openGPU(b, 20*time.Second)
	type timed struct {
		name     string
		schedule *schedule.Schedule
		forms    []string
		size     [3]int
	}
	var all []timed
	for _, c := range []*cell.Cell{cell.Linear, cell.GILR, cell.SRU} {
		for _, test := range wholeRows {
			for _, pass := range []string{"inference", "forward", "backward"} {
				t := timed{fmt.Sprintf("%s/%s/%dx%dx%d", c.Name, pass, test.size[0], test.size[1], test.size[2]), scanningTimes(b, c, pass, test.size, schedule.FP32, 1), nil, test.size}
				t.forms = taken(t.schedule, []string{"", test.form})
				for _, form := range t.forms {
					d.Precompile(t.schedule, with(form))
				}
				all = append(all, t)
			}
		}
	}
	for _, t := range all {
		b.Run(t.name, func(b *testing.B) { formRates(b, d, t.schedule, t.size, 1, t.forms) })
	}
}

// TestGPUScanWholeRows holds tiles of whole rows to their meaning, from few tiles to more than have
// words of their own. Each has a worker of its own, since the first version of these kernels did
// not end.
func TestGPUScanWholeRows(t *testing.T) {
	for _, test := range []rowScan{
		{cell.Linear, [3]int{2003, 3, 15}, schedule.FP32, 0, "scanlanes=512"},
		{cell.Linear, [3]int{520, 3, 77}, schedule.FP32, 0, "scanlanes=512"},
		{cell.GILR, [3]int{5001, 3, 77}, schedule.FP32, 0, "scanlanes=512"},
		{cell.Linear, [3]int{20003, 3, 77}, schedule.FP32, 0, "scanlanes=512"},
		{cell.QRNN, [3]int{12011, 1, 37}, schedule.FP32, 0, "scanlanes=512"},
		{cell.SRU, [3]int{4003, 1, 229}, schedule.BF16, 0, "scanlanes=512"},
		{cell.MinGRU, [3]int{4003, 5, 100}, schedule.FP32, 0, "scanlanes=512"},
		{cell.RGLRU.Scanned, [3]int{4001, 17, 19}, schedule.FP32, 0, "scanlanes=512"},
		{cell.LSLSTM.Core, [3]int{2003, 3, 33}, schedule.FP16, 0, "scanlanes=512"},
		{cell.Linear, [3]int{2999, 7, 333}, schedule.FP32, 0, "scanlanes=256"},
		{cell.GILR, [3]int{4001, 1, 549}, schedule.FP32, 0, "scanlanes=256"},
		{cell.SRU, [3]int{2001, 3, 847}, schedule.FP32, 0, "scanlanes=256"},
	} {
		t.Run(fmt.Sprint(test.cell, test.size, test.precision, test.knobs), func(t *testing.T) {
			d := openGPU(t, 10*time.Second)
			k, err := knob.Parse(test.knobs)
			if err != nil {
				t.Fatal(err)
			}
			devicetest.HoldScanWith(t, d, test.cell, test.size, test.precision, false, k)
			devicetest.HoldScanWith(t, d, test.cell, test.size, test.precision, true, k)
		})
	}
}
