package model_test

import (
	"math"
	"strings"
	"testing"

	"rnnbench/model"
	"rnnbench/rnn/cell"
)

func load(t *testing.T, name string) *model.Machine {
	t.Helper()
	m, err := model.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func work(t *testing.T, c *cell.Cell, hidden, batch int, bytes float64) model.Work {
	t.Helper()
	w, err := model.Recurrent(c, hidden, batch, bytes)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// sizes are the layers of the figure.
func sizes() (list []int) {
	for h := 128; h <= 2048; h += 128 {
		list = append(list, h)
	}
	return list
}

// persistent is the best rate of each layer size at minibatch 4 with weights on
// chip, 0 where they do not fit.
func persistent(t *testing.T, m *model.Machine, v model.Variant) []float64 {
	t.Helper()
	return persistentAt(t, m, v, 4)
}

func persistentAt(t *testing.T, m *model.Machine, v model.Variant, batch int) []float64 {
	t.Helper()
	var rates []float64
	changed := v.Of(m)
	for _, h := range sizes() {
		s, ok, err := changed.Persistent(work(t, cell.RNNReLU, h, batch, v.Bytes(4)))
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			rates = append(rates, 0)
			continue
		}
		rates = append(rates, s.FLOPS())
	}
	return rates
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

func largest(rates []float64) (h int) {
	for i, r := range rates {
		if r > 0 {
			h = sizes()[i]
		}
	}
	return h
}

// TestFindings compares the model with section 5.1.4 of Diamos et al.
func TestFindings(t *testing.T) {
	m := load(t, "titanx")
	rates := map[string][]float64{}
	for _, v := range model.Variants() {
		rates[v.Name] = persistent(t, m, v)
	}
	base := mean(rates["base"])
	better := func(a, b string) {
		t.Helper()
		if x, y := mean(rates[a]), mean(rates[b]); x < 1.05*y {
			t.Errorf("%s: %.3g FLOP/s over all sizes, %s: %.3g; the paper ranks the first clearly higher", a, x, b, y)
		}
	}
	better("half", "registers") // "16-bit floating point operations provides the biggest improvement"
	better("registers", "cores")
	better("cores", "base")
	better("latency", "base")
	if d := mean(rates["dram"])/base - 1; math.Abs(d) > 0.01 {
		t.Errorf("twice the bandwidth of main memory changes %.1f %%; the paper: unlikely to impact", 100*d)
	}
	// "a larger range of layer sizes (smaller layer sizes in particular)":
	// the gain falls with the layer size.
	gain := func(i int) float64 { return rates["latency"][i] / rates["base"][i] }
	for i := 1; i < len(sizes()) && rates["base"][i] > 0; i++ {
		if gain(i) > gain(i-1) {
			t.Errorf("half the latency: ×%.2f at %d units and ×%.2f at %d", gain(i), sizes()[i], gain(i-1), sizes()[i-1])
		}
	}
	if gain(0) < 1.5 {
		t.Errorf("half the latency: ×%.2f only at %d units", gain(0), sizes()[0])
	}
	for _, v := range []string{"registers", "cores", "half"} { // "enable bigger recurrent layer sizes"
		if a, b := largest(rates[v]), largest(rates["base"]); a <= b {
			t.Errorf("%s: layers of at most %d units, base %d", v, a, b)
		}
	}
}

// TestRanking: the ranking of variants does not depend on numbers that the paper does not print.
// These are the latency of loads and the rate of the L2 cache.
func TestRanking(t *testing.T) {
	for _, factor := range []struct{ l, b float64 }{{0.5, 1}, {2, 1}, {1, 0.5}, {1, 2}, {0.5, 0.5}, {2, 2}} {
		m := load(t, "titanx")
		m.Levels[2].L *= factor.l
		m.Levels[2].B *= factor.b
		last := math.Inf(1)
		for _, name := range []string{"half", "registers", "cores", "base"} {
			v, err := model.LookupVariant(name)
			if err != nil {
				t.Fatal(err)
			}
			now := mean(persistent(t, m, v))
			if now >= last {
				t.Errorf("latency ×%v, L2 ×%v: %s is not behind the one before: %.3g and %.3g", factor.l, factor.b, name, now, last)
			}
			last = now
		}
	}
}

// TestRankingRests: what diamos-fig6 says about more multiprocessors. They pass more memory where
// distances cost nothing, and at larger minibatches.
func TestRankingRests(t *testing.T) {
	m := load(t, "titanx")
	variant := func(name string) model.Variant {
		v, err := model.LookupVariant(name)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	near := load(t, "titanx")
	near.Levels[2].C /= math.Sqrt2
	near.Levels[2].L /= math.Sqrt2
	if cores, memory := mean(persistent(t, near, variant("cores"))), mean(persistent(t, m, variant("registers"))); cores <= memory {
		t.Errorf("without distances: %.3g and %.3g FLOP/s", cores, memory)
	}
	for _, batch := range []int{16, 64} {
		if cores, memory := mean(persistentAt(t, m, variant("cores"), batch)), mean(persistentAt(t, m, variant("registers"), batch)); cores <= memory {
			t.Errorf("minibatch %d: %.3g and %.3g FLOP/s", batch, cores, memory)
		}
	}
}

// TestTitanX compares the model with what the paper measured and chose.
func TestTitanX(t *testing.T) {
	m := load(t, "titanx")
	if got := m.Parts(); got != 6144 {
		t.Errorf("%d threads, and the paper says 6144", got)
	}
	s, ok, err := m.Persistent(work(t, cell.RNNReLU, 1152, 4, 4))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if s.Tiling[2] != (model.Split{Rows: 24, Cols: 1, Batch: 1}) {
		t.Errorf("tiling %v, and the paper gives each of 24 multiprocessors 48 rows", s.Tiling)
	}
	if r := s.FLOPS() / 2.8e12; r < 1/1.25 || r > 1.25 {
		t.Errorf("%.3g FLOP/s at minibatch 4, and the paper measured 2.8e12", s.FLOPS())
	}
	// "the NVIDIA TitanX GPU has 6.3 MB of register file memory, which is enough
	// to store a recurrent layer with approximately 1200 activations"
	if _, _, h, err := m.Room(cell.RNNReLU, 4); err != nil || h < 1100 || h > 1200 {
		t.Errorf("layers of at most %d units stay on chip (%v)", h, err)
	}
}

// TestMeasured compares predictions with persistent steps measured on two processors of the machine
// class of xeon.toml. A step was W·h with a clamp for the non-linearity, and a barrier.
func TestMeasured(t *testing.T) {
	m := load(t, "xeon")
	for _, c := range []struct {
		cell          *cell.Cell
		hidden, batch int
		home          string
		us            float64
	}{
		{cell.RNNTanh, 256, 1, "L2", 2.07},
		{cell.RNNTanh, 512, 1, "L2", 8.2},
		{cell.RNNTanh, 512, 1, "L2", 9.8}, // in another run
		{cell.RNNTanh, 512, 4, "L2", 16.8},
		{cell.LSTM, 256, 1, "L2", 8.0},
		{cell.LSTM, 512, 1, "L3", 99},
		{cell.GRU, 512, 1, "L3", 86},
		{cell.RNNTanh, 1024, 1, "L3", 106},
		{cell.LSTM, 1024, 1, "L3", 494},
		{cell.RNNTanh, 2048, 1, "L3", 528},
	} {
		s, err := m.Bands(work(t, c.cell, c.hidden, c.batch, 4))
		if err != nil {
			t.Fatal(err)
		}
		off := s.Time*1e6/c.us - 1
		t.Logf("%v H=%d B=%d: %.3g µs in %s, measured %.3g (%+.0f %%)", c.cell, c.hidden, c.batch, s.Time*1e6, s.Home, c.us, 100*off)
		if s.Home != c.home || math.Abs(off) > 0.25 {
			t.Errorf("%v H=%d B=%d: %.3g µs in %s; measured %.3g µs in %s", c.cell, c.hidden, c.batch, s.Time*1e6, s.Home, c.us, c.home)
		}
	}
}

// TestTilings tries every tiling of a few odd sizes on every machine. All are valid, none is faster
// than Best, and no product is faster than the peak.
func TestTilings(t *testing.T) {
	for _, name := range model.Builtin() {
		m := load(t, name)
		for _, w := range []model.Work{
			work(t, cell.LSTM, 1, 1, 4), work(t, cell.GRU, 37, 3, 4), work(t, cell.RNNTanh, 1152, 4, 2), work(t, cell.LSTM, 4096, 64, 4),
		} {
			best, err := m.Best(w)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for tiling := range m.Tilings(w) {
				n++
				s, err := m.Predict(w, tiling)
				if err != nil {
					t.Fatalf("%s: %+v: %v: %v", name, w, tiling, err)
				}
				peak := m.FLOPS
				if w.Bytes == 2 && m.Half > 0 {
					peak *= m.Half
				}
				if !(s.Time > 0) || s.FLOPS() > peak*(1+1e-9) || s.Time < best.Time || s.Limit == "" || s.Home == "" {
					t.Fatalf("%s: %+v: best %v", name, s, best.Time)
				}
			}
			if n == 0 {
				t.Errorf("%s: no tiling of %+v", name, w)
			}
		}
	}
}

// TestMoreIsNeverSlower: more of anything is never slower, and no variant changes the machine that
// it starts from.
func TestMoreIsNeverSlower(t *testing.T) {
	for _, name := range model.Builtin() {
		m := load(t, name)
		before, err := m.Format()
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range []int{128, 512, 1536} {
			last := 0.0
			for _, b := range []int{1, 2, 4, 8} {
				s, err := m.Best(work(t, cell.LSTM, h, b, 4))
				if err != nil {
					t.Fatal(err)
				}
				if s.Time < last*(1-1e-9) {
					t.Errorf("%s: %d units: batch %d takes %g, less than a smaller one: %g", name, h, b, s.Time, last)
				}
				last = s.Time
				for _, v := range model.Variants() {
					if v.Name == "cores" { // more of them pay for distance
						continue
					}
					u, err := v.Of(m).Best(work(t, cell.LSTM, h, b, v.Bytes(4)))
					if err != nil {
						t.Fatal(err)
					}
					if u.Time > s.Time*(1+1e-9) {
						t.Errorf("%s: %d units, batch %d: %s is slower: %g, not %g", name, h, b, v.Name, u.Time, s.Time)
					}
				}
			}
		}
		after, err := m.Format()
		if err != nil || string(after) != string(before) {
			t.Errorf("%s: a variant changed the machine", name)
		}
	}
}

// TestFind: a card with the name of a machine but other links is not that machine.
func TestFind(t *testing.T) {
	for device, want := range map[string]string{
		"NVIDIA H100 80GB HBM3": "H100", "NVIDIA H200": "H200", "NVIDIA H100 PCIe": "", "NVIDIA H100 NVL": "", "NVIDIA A100-SXM4-40GB": "",
	} {
		m, err := model.Find(device)
		if err != nil || (m == nil) != (want == "") || m != nil && m.Name != want {
			t.Errorf("%s: %+v, %v", device, m, err)
		}
	}
}

func TestFiles(t *testing.T) {
	for _, name := range model.Builtin() {
		m := load(t, name)
		text, err := m.Format()
		if err != nil {
			t.Fatal(err)
		}
		again, err := model.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if x, err := again.Format(); err != nil || string(x) != string(text) {
			t.Errorf("%s: reads back as\n%s", name, x)
		}
	}
	good, err := load(t, "titanx").Format()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"flops = ", "flopz = ", "a machine has no flopz"},
		{"flops = 6", "flops = -6", "flops is -6"},
		{"p = 24", "p = 0", "level L2: p is 0"},
		{"b = 7", "b = -7", "level L2: b, c, l, x and m"},
		{"b = 768", "b = 0.0 #", "level L2: its 24 parts need b or x"},
		{"b = 3365", "b = 0.0 #", "the outermost level needs b"},
		{"name = 'TitanX'", "name = ''", "no name"},
		{"m = 896.0", "m = nan", "level registers"},
		{"m = 12", "# m = 12", "level DRAM has no m"},
		{"p = 24", "p = 24 24", "model: "},
	} {
		text := strings.Replace(string(good), c.old, c.new, 1)
		if text == string(good) {
			t.Errorf("%q is not in the file:\n%s", c.old, good)
		}
		if _, err := model.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: %v, want %q", c.new, c.old, err, c.want)
		}
	}
	if _, err := model.Load("titany"); err == nil || !strings.Contains(err.Error(), `unknown machine or file "titany"`) {
		t.Error(err)
	}
	if _, err := model.Recurrent(cell.GILR, 8, 1, 4); err == nil {
		t.Error("a linear recurrence has no recurrent product to predict")
	}
	if _, err := load(t, "titanx").Predict(work(t, cell.LSTM, 8, 1, 4), model.Tiling{{Rows: 1, Cols: 1, Batch: 1}}); err == nil {
		t.Error("a tiling of one level fits a machine of four")
	}
}

// TestScan compares the costs with section 2.1 of Martin & Cundy: for p ≪ T the parallel scan wins
// from three processors on.
func TestScan(t *testing.T) {
	if got := model.SerialScan(256, 1000); got != 512000 {
		t.Errorf("serial: %v", got)
	}
	if got := model.ParallelScan(256, 1024, 4); got != 6*256*(256+2) {
		t.Errorf("parallel: %v", got)
	}
	for _, c := range []struct{ steps, want int }{{65536, 4}, {1024, 4}, {64, 4}, {4, 0}} {
		if got := model.ScanCrossover(c.steps); got != c.want {
			t.Errorf("%d steps: crossover at %d processors, want %d", c.steps, got, c.want)
		}
	}
	// At 3 processors only lg p stands between the costs.
	if r := model.ParallelScan(1, 1<<20, 3) / model.SerialScan(1, 1<<20); r < 1 || r > 1.0001 {
		t.Errorf("3 processors, long sequence: ×%v", r)
	}
}

// TestMeets interpolates between numbers of parts that were measured.
func TestMeets(t *testing.T) {
	m := &model.Machine{Levels: []model.Level{{C: 9e-6}}, Meetings: []model.Meeting{{Parts: 2, Seconds: 1e-6}, {Parts: 4, Seconds: 2e-6}, {Parts: 16, Seconds: 5e-6}}}
	for parts, want := range map[int]float64{0: 0, 1: 0, 2: 1e-6, 3: 1.5e-6, 4: 2e-6, 8: 3e-6, 16: 5e-6, 17: 9e-6} {
		if got := m.Meets(parts); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d parts: %v, want %v", parts, got, want)
		}
	}
	for _, all := range [][]model.Meeting{{{1, 1}}, {{4, 1}, {2, 1}}, {{2, -1}}, {{2, math.NaN()}}, {{2, math.Inf(1)}}, {{1 << 20, 1}}} {
		m := &model.Machine{Name: "x", FLOPS: 1, Levels: []model.Level{{Name: "x", P: 1, B: 1, M: 1}}, Meetings: all}
		if err := m.Check(); err == nil {
			t.Errorf("%v is taken", all)
		}
		if m.Meetings = nil; m.Check() != nil {
			t.Error(m.Check())
		}
	}
}
