package grid

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rnnbench/record"
	"rnnbench/rnn/knob"
)

func words() Vocabulary {
	return Vocabulary{
		Words: map[string][]string{
			"cell":      {"rnn-tanh", "rnn-relu", "gru", "lstm", "lstm-peephole", "lstm-c", "mingru", "rg-lru", "slstm"},
			"pass":      {"forward", "train"},
			"precision": {"fp32", "tf32", "bf16", "fp16"},
			"direction": {"forward", "reverse", "both", "alternate"},
		},
		Impls: []string{"naive", "cudnnstyle", "persistent", "scan", "scc"},
		Derive: func(p record.Point, s Spec, key string) (float64, error) {
			switch key {
			case "flops":
				if s.Name != "" {
					return 0, errors.New("flops do not depend on the technique")
				}
				return float64(8 * p.Hidden * p.Hidden * p.Batch * p.Steps), nil
			case "mem":
				return float64(p.Hidden * p.Hidden * len(s.Name)), nil
			}
			return 1, nil
		},
	}
}

func mustGrid(t *testing.T, r Request) *Grid {
	t.Helper()
	g, err := New(r, words())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func mustPoints(t *testing.T, r Request) []record.Point {
	t.Helper()
	points, err := mustGrid(t, r).Points()
	if err != nil {
		t.Fatal(err)
	}
	return points
}

type axes = map[string]string

func TestValues(t *testing.T) {
	for text, want := range map[string][]int{
		"512":                 {512},
		"4k,4Ki,1Mi,1M,1G":    {4000, 4096, 1 << 20, 1e6, 1e9},
		"64:256:64":           {64, 128, 192, 256},
		"64:255:64":           {64, 128, 192},
		"256:4096:x2":         {256, 512, 1024, 2048, 4096},
		"1:100:x10":           {1, 10, 100},
		"7:7:1":               {7},
		"7:7:x2":              {7},
		"1:2:1073741824":      {1},
		"1Gi:1Gi:x1073741824": {1 << 30},
		"64, 256:1k:x2 ,64":   {64, 256, 512, 64},
	} {
		v, err := ParseValues(text, "")
		if err != nil || !slices.Equal(v.List(), want) {
			t.Errorf("%s: got %v, %v", text, v.List(), err)
		}
	}
	v, err := ParseValues("auto,0,4", "auto")
	if err != nil || !slices.Equal(v.List(), []int{0, 0, 4}) || v.Format("auto") != "auto,auto,4" {
		t.Errorf("got %v, %v", v.List(), err)
	}
}

// A mistake is a request that New refuses, and a part of the error.
type mistake struct {
	r    Request
	want string
}

// mistakenAxes returns requests with invalid values of axes.
func mistakenAxes() []mistake {
	axis := func(name, text string) Request { return Request{Axes: axes{name: text}} }
	return []mistake{
		{axis("hidden", ""), `--hidden: "" is not a size: write a whole number`},
		{axis("hidden", "0"), "--hidden: 0 is not allowed here"},
		{axis("hidden", "-4"), `"-4" is not a size`},
		{axis("hidden", "+4"), `"+4" is not a size`},
		{axis("hidden", "NaN"), `"NaN" is not a size`},
		{axis("hidden", "1e3"), `"1e3" is not a size`},
		{axis("hidden", "1.5k"), `"1.5k" is not a size`},
		{axis("hidden", "4kk"), `"4kk" is not a size`},
		{axis("hidden", "99999999999999999999"), "too large"},
		{axis("hidden", "2Gi"), "too large"},
		{axis("hidden", "64,,128"), `"" is not a size`},
		{axis("hidden", "1:2"), "not a range"},
		{axis("hidden", "1:2:3:4"), "not a range"},
		{axis("hidden", "512:64:64"), "write 64:512:64"},
		{axis("hidden", "1:64:0"), `has the step "0"`},
		{axis("hidden", "1:64:-1"), `has the step "-1"`},
		{axis("hidden", "1:64:x1"), `has the factor "1"`},
		{axis("hidden", "1:64:x0"), `has the factor "0"`},
		{axis("hidden", "1:64:x1.5"), `has the factor "1.5"`},
		{axis("hidden", "1:64:x"), `has the factor ""`},
		{axis("hidden", "0:64:1"), "0 is not allowed"},
		{axis("hidden", "1:1Gi:1"), "more than 1000000 values"},
		{axis("streams", "none"), "or auto"},
		{Request{Axes: axes{"hidden": "1:2000:1", "batch": "1:2000:1"}}, "more than 1000000 points"},
		{axis("hiden", "1"), `unknown axis "hiden": did you mean hidden?`},
		{axis("cell", "lstn"), `--cell: unknown cell "lstn": did you mean lstm?`},
		{axis("cell", "transformer"), "choose among rnn-tanh, rnn-relu"},
		{axis("pass", "fwd"), `unknown pass "fwd"`},
		{axis("onehot", "yes"), `unknown onehot "yes"`},
	}
}

// mistakenRequests returns requests whose parts contradict each other.
func mistakenRequests() []mistake {
	return []mistake{
		{Request{Points: []string{"H=1,Q=2"}}, `unknown axis "Q"`},
		{Request{Points: []string{"H=1,H=2"}}, "sets hidden twice"},
		{Request{Points: []string{"H"}}, "write a point such as"},
		{Request{Points: []string{""}}, "write a point such as"},
		{Request{Points: []string{"H=1:4:x2"}}, "has 3 values in a point"},
		{Request{Points: []string{"H=0"}}, "--point: H: 0 is not allowed"},
		{Request{Points: []string{"H=1", "H=2"}, Axes: axes{"hidden": "3"}}, "--hidden has no effect"},
		{Request{Presets: []string{"deepbench"}}, "--preset: unknown preset"},
		{Request{Presets: []string{"deepbench-tran"}}, "did you mean deepbench-train?"},
		{Request{Zips: []Zip{{Axes: []string{"hidden"}}}}, "hidden is a single axis"},
		{Request{Zips: []Zip{{Axes: []string{"hidden", "hidden"}}}}, "names hidden twice"},
		{Request{Zips: []Zip{{Axes: []string{"hidden", "batch"}}, {Axes: []string{"batch", "steps"}}}, Axes: axes{"hidden": "1", "batch": "1", "steps": "1"}}, "names batch twice"},
		{Request{Zips: []Zip{{Axes: []string{"hidden", "batch"}}}, Axes: axes{"hidden": "1,2", "batch": "1"}}, "hidden has 2 values and batch has 1"},
		{Request{Zips: []Zip{{Axes: []string{"hidden", "batch"}}}, Axes: axes{"hidden": "1,2"}}, "set --batch"},
		{Request{Zips: []Zip{{Axes: []string{"hidden", "batch"}, Rows: [][]string{{"1"}}}}}, "row of 1 values"},
		{Request{Zips: []Zip{{Axes: []string{"hidden", "batch"}, Rows: [][]string{{"1", "1,2"}}}}}, "more than one value"},
		{Request{Zips: []Zip{{Axes: []string{"hidden", "batch"}, Rows: [][]string{{"1", "2"}}}}, Axes: axes{"batch": "1"}}, "both set batch"},
		{Request{Zips: []Zip{{Axes: []string{"hidden", "batch"}, Rows: [][]string{{"1", "2"}}}}, Points: []string{"H=4"}}, "both set hidden"},
		{Request{Where: []string{"hidden"}}, "is not a condition"},
		{Request{Where: []string{"hidden=>4"}}, `has the operator "=>"`},
		{Request{Where: []string{"hidden<="}}, "has no value"},
		{Request{Where: []string{"hiden<4"}}, `unknown key "hiden": did you mean hidden?`},
		{Request{Where: []string{"cell<lstm"}}, "orders words"},
		{Request{Where: []string{"cell=lstn"}}, "did you mean lstm?"},
		{Request{Where: []string{"direction=bothh"}}, "did you mean both?"},
		{Request{Where: []string{"impl=naiv"}}, "did you mean naive?"},
		{Request{Where: []string{"impl=zzzzzz"}, Impl: []string{"naive,own=scan"}}, "choose among naive, cudnnstyle, persistent, scan, scc, own"},
		{Request{Where: []string{"mem<=lots"}}, "is not a number"},
		{Request{Where: []string{"mem<=NaN"}}, "is not a number"},
		{Request{Where: []string{"mem<=1e999"}}, "is not a number"},
		{Request{Where: []string{"mem<=-1"}}, "is not a number"},
		{Request{Where: []string{"hidden<=0x10"}}, "is not a number"},
		{Request{Exclude: [][]string{{}}}, "excludes everything"},
		{Request{Impl: []string{"cudnn"}}, `--impl: unknown technique "cudnn": did you mean cudnnstyle?`},
		{Request{Impl: []string{"naive:"}}, "ends after its colon"},
		{Request{Impl: []string{"naive:a"}}, "write name=integer"},
		{Request{Impl: []string{"naive,,scan"}}, "unknown technique"},
		{Request{Impl: []string{"x=naive,x=scan"}}, `labelled "x"`},
		{Request{Impl: []string{"x=naive,y=naive"}}, `--impl: naive is labelled both "x" and "y": remove one of them`},
		{Request{Impl: []string{"naive"}, SkipImpl: []string{"naive"}}, "--skip-impl removes all of --impl"},
		{Request{SkipImpl: []string{"nave"}}, "did you mean naive?"},
	}
}

// TestMistakes: every mistake gives one sentence that says what to write.
func TestMistakes(t *testing.T) {
	for _, c := range append(mistakenAxes(), mistakenRequests()...) {
		_, err := New(c.r, words())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v:\n got %v\nwant %s", c.r, err, c.want)
		}
	}
	g := mustGrid(t, Request{Where: []string{"hidden>4096"}})
	if _, err := g.Points(); err == nil || !strings.Contains(err.Error(), "all are excluded by --where hidden>4096") {
		t.Errorf("got %v", err)
	}
}

func TestProduct(t *testing.T) {
	r := Request{Axes: axes{"hidden": "64,128,64", "batch": "1,2", "cell": "all"}, Impl: []string{"naive,scan"}}
	points := mustPoints(t, r)
	if len(points) != 36 {
		t.Fatalf("%d points", len(points))
	}
	want := record.Point{Cell: "rnn-tanh", Pass: "forward", Hidden: 64, Input: 64, Batch: 1, Steps: 50, Layers: 1, Precision: "fp32"}
	if points[0] != want {
		t.Errorf("got %+v", points[0])
	}
	if points[1].Batch != 2 || points[2].Hidden != 128 || points[4].Cell != "rnn-relu" {
		t.Errorf("the order is %v", points)
	}
	line, err := mustGrid(t, r).Summary()
	if want := "72 records = 9 cell × 2 hidden × 2 batch × 2 techniques"; err != nil || line != want {
		t.Errorf("got %q, %v", line, err)
	}
	r.Where = []string{"batch<2"}
	if line, _ := mustGrid(t, r).Summary(); !strings.HasSuffix(line, "techniques; 36 excluded by conditions") {
		t.Errorf("got %q", line)
	}
	if line, _ := mustGrid(t, Request{Impl: []string{"naive"}}).Summary(); line != "1 record" {
		t.Errorf("got %q", line)
	}
	if line, _ := mustGrid(t, Request{}).Summary(); line != "5 records = 5 techniques" {
		t.Errorf("got %q", line)
	}
}

func TestPointsAndZip(t *testing.T) {
	spell := func(r Request) string {
		var s []string
		for _, p := range mustPoints(t, r) {
			s = append(s, fmt.Sprintf("%d/%d/%d/%d/%d", p.Hidden, p.Input, p.Batch, p.Steps, p.Streams))
		}
		return strings.Join(s, " ")
	}
	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{Points: []string{"H=1Ki,b=2,T=3,S=4,I=5", "hidden=8,batch=2,steps=3", "H=8,B=2,T=3"}}, "1024/5/2/3/4 8/8/2/3/0"},
		{Request{Points: []string{"H=8"}, Axes: axes{"batch": "1,2"}}, "8/8/1/50/0 8/8/2/50/0"},
		{Request{Points: []string{"H=8,input=hidden,S=auto"}}, "8/8/32/50/0"},
		{Request{Axes: axes{"hidden": "4,8", "batch": "1,2", "steps": "5,6"}, Zips: []Zip{{Axes: []string{"hidden", "batch"}}}},
			"4/4/1/5/0 4/4/1/6/0 8/8/2/5/0 8/8/2/6/0"},
		{Request{Axes: axes{"hidden": "4,4", "batch": "1,2"}, Zips: []Zip{{Axes: []string{"batch", "hidden"}}}}, "4/4/1/50/0 4/4/2/50/0"},
		{Request{Zips: []Zip{{Axes: []string{"hidden", "batch"}, Rows: [][]string{{"1760", "16"}, {"2Ki", "32"}}}}}, "1760/1760/16/50/0 2048/2048/32/50/0"},
		{Request{Presets: []string{"deepbench-device"}}, "32/32/1/672/0 64/64/1/96/0 256/256/1/150/0"},
		{Request{Presets: []string{"deepbench-device"}, Axes: axes{"steps": "7", "hidden": "9"}}, "9/9/1/7/0 9/9/1/7/0"},
		{Request{Presets: []string{"deepbench-device"}, Points: []string{"H=1,B=2"}, Where: []string{"hidden<=32"}}, "32/32/1/672/0 1/1/2/50/0"},
	} {
		if got := spell(c.r); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.r, got, c.want)
		}
	}
	if z, err := ParseZip(" hidden, batch"); err != nil || !slices.Equal(z.Axes, []string{"hidden", "batch"}) {
		t.Errorf("got %v, %v", z, err)
	}
}

func TestConditions(t *testing.T) {
	base := Request{Axes: axes{"hidden": "1:8:x2", "cell": "lstm,gru", "streams": "auto,2"}, Impl: []string{"naive,cudnnstyle:fused=0,cudnnstyle"}}
	for _, c := range []struct {
		where   []string
		exclude [][]string
		points  int
		pairs   int
	}{
		{nil, nil, 16, 48},
		{[]string{"hidden<=2"}, nil, 8, 24},
		{[]string{"hidden>1", "hidden < 8"}, nil, 8, 24},
		{[]string{"hidden!=1", "cell==gru"}, nil, 6, 18},
		{[]string{"streams=auto"}, nil, 8, 24},
		{[]string{"impl=naive"}, nil, 16, 16},
		{[]string{"impl!=cudnnstyle"}, nil, 16, 16},
		{[]string{"impl=cudnnstyle:fused=0"}, nil, 16, 16},
		{[]string{"mem<=100"}, nil, 12, 28},
		{[]string{"flops>=51.2k"}, nil, 12, 36},
		{[]string{"intensity=1"}, nil, 16, 48},
		{nil, [][]string{{"impl=naive", "hidden>2"}}, 16, 40},
		{nil, [][]string{{"cell=gru"}, {"hidden=8"}}, 6, 18},
		{nil, [][]string{{"impl=naive"}, {"impl=cudnnstyle", "streams=2"}}, 8, 16},
	} {
		r := base
		r.Where, r.Exclude = c.where, c.exclude
		g := mustGrid(t, r)
		points, err := g.Points()
		if err != nil {
			t.Errorf("%v %v: %v", c.where, c.exclude, err)
			continue
		}
		pairs := 0
		for _, p := range points {
			for _, s := range g.Specs() {
				ok, err := g.Wants(p, s)
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					pairs++
				}
			}
		}
		if len(points) != c.points || pairs != c.pairs {
			t.Errorf("%v %v: got %d points and %d pairs, want %d and %d", c.where, c.exclude, len(points), pairs, c.points, c.pairs)
		}
	}
	for text, want := range map[string]string{
		"mem <= 16GiB": "mem<=1.7179869184e+10", "flops>1.5T": "flops>1.5e+12", "hidden==4k": "hidden=4000", "cell = lstm": "cell=lstm", "mem<2MB": "mem<2e+06",
	} {
		if c, err := ParseCondition(text); err != nil || c.String() != want {
			t.Errorf("%s: got %v, %v", text, c, err)
		}
	}
	// A record has all knobs and may have any label.
	all := Spec{Name: "cudnnstyle", Label: "first: grouped", Knobs: knob.Params{"fused": 0, "overlap": 1, "teams": 0}}
	for text, want := range map[string]bool{
		"impl=cudnnstyle:fused=0": true, "impl=cudnnstyle:overlap=1:fused=0": true, "impl!=cudnnstyle:fused=0": false, "impl=cudnnstyle:fused=1": false,
		"impl=cudnnstyle:fused=0:overlap=0": false, "impl=cudnnstyle:split=0": false, "impl=scan:fused=0": false, "impl=cudnnstyle": true,
	} {
		if ok, err := mustGrid(t, Request{Where: []string{text}}).Wants(record.Point{}, all); err != nil || ok != want {
			t.Errorf("%s: got %v, %v", text, ok, err)
		}
	}
	v := words()
	v.Derive = nil
	g, err := New(Request{Where: []string{"mem<1G"}}, v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Points(); err == nil || !strings.Contains(err.Error(), "mem is not available here") {
		t.Errorf("got %v", err)
	}
}

func TestSpecs(t *testing.T) {
	for _, c := range []struct {
		impl, skip []string
		want       string
	}{
		{nil, nil, "naive|naive cudnnstyle|cudnnstyle persistent|persistent scan|scan scc|scc"},
		{nil, []string{"scan,scc", "naive"}, "cudnnstyle|cudnnstyle persistent|persistent"},
		{[]string{"naive", "scan,naive"}, nil, "naive|naive scan|scan"},
		{[]string{"cudnnstyle:overlap=0:fused=0"}, nil, "cudnnstyle:fused=0:overlap=0|cudnnstyle:fused=0:overlap=0"},
		{[]string{"cudnnstyle:fused=0,cudnnstyle"}, nil, "cudnnstyle:fused=0|cudnnstyle:fused=0 cudnnstyle|cudnnstyle"},
		{[]string{"grouped=cudnnstyle:fused=0,cudnnstyle:fused=1"}, nil, "cudnnstyle:fused=0|grouped cudnnstyle:fused=1|cudnnstyle:fused=1"},
		{[]string{"all,base=naive"}, []string{"scan,scc"}, "naive|base cudnnstyle|cudnnstyle persistent|persistent"},
		{[]string{"base=naive,all,base=naive"}, []string{"scan,scc"}, "naive|base cudnnstyle|cudnnstyle persistent|persistent"},
		{[]string{"all,base=naive:x=1"}, []string{"cudnnstyle,persistent,scan,scc,naive:x=1"}, "naive|naive"},
	} {
		g, err := New(Request{Impl: c.impl, SkipImpl: c.skip}, words())
		if err != nil {
			t.Errorf("%v: %v", c.impl, err)
			continue
		}
		var got []string
		for _, s := range g.Specs() {
			got = append(got, s.String()+"|"+s.Label)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v: got %s", c.impl, strings.Join(got, " "))
		}
	}
}

func TestPresets(t *testing.T) {
	sizes := map[string]int{"deepbench-train": 52, "deepbench-infer": 69, "deepbench-device": 3, "appleyard": 20, "persistent-rnn": 15, "hwang": 55, "martin": 53,
		"benchdnn-train": 11, "benchdnn-infer": 11, "quick": 16, "production": 24, "production-quick": 20, "rl": 66, "rl-quick": 18}
	for _, p := range Presets() {
		points := mustPoints(t, Request{Presets: []string{p.Name}})
		if len(points) != sizes[p.Name] {
			t.Errorf("%s has %d points, want %d", p.Name, len(points), sizes[p.Name])
		}
		if p.Doc == "" || p.Source == "" {
			t.Errorf("%s is not documented", p.Name)
		}
		for _, q := range points {
			if p.Name == "hwang" && q.Batch*q.Steps != 1024 {
				t.Errorf("%v has not 1024 frames", q)
			}
		}
	}
	line, err := mustGrid(t, Request{Presets: []string{"deepbench-device"}, Impl: []string{"naive,scan"}}).Summary()
	if want := "6 records = 3 shapes × 2 techniques"; err != nil || line != want {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestNearest(t *testing.T) {
	list := []string{"hidden", "batch", "steps", "streams", "layers"}
	for word, want := range map[string]string{"hiden": "hidden", "HIDDEN": "hidden", "stream": "streams", "step": "steps", "layer": "layers", "st": "steps", "q": "", "zzzzzz": "", "": "",
		"seq_len": "steps", "Batch-Size": "batch", "num_layers": "layers", "L": "layers", "btach": "batch", "bta": "", "dtype": ""} {
		if got := Nearest(word, list); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

func TestHash(t *testing.T) {
	a := mustGrid(t, Request{Presets: []string{"quick"}})
	b := mustGrid(t, Request{Presets: []string{"quick"}, Impl: []string{"naive"}})
	p := mustPoints(t, Request{Presets: []string{"quick"}})
	if Hash(p, a.Specs()) != Hash(slices.Clone(p), slices.Clone(a.Specs())) || Hash(p, a.Specs()) == Hash(p, b.Specs()) || Hash(p[1:], a.Specs()) == Hash(p, a.Specs()) {
		t.Error("the hash does not follow the plan")
	}
}

// FuzzValues: accepted values are bounded and read back as they print.
func FuzzValues(f *testing.F) {
	for _, s := range []string{"512", "4k,1Mi", "64:256:64", "256:4096:x2", "1:1Gi:1", "auto", "0", "1:2:", "9999999999999999999k", "1Gi:1Gi:x2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, zero := range []string{"", "auto"} {
			v, err := ParseValues(text, zero)
			if err != nil {
				continue
			}
			list := v.List()
			if len(list) > MaxPoints || len(list) == 0 || slices.Max(list) > MaxSize || slices.Min(list) < 0 || zero == "" && slices.Min(list) == 0 {
				t.Fatalf("%q gives %d values from %d to %d", text, len(list), slices.Min(list), slices.Max(list))
			}
			again, err := ParseValues(v.Format(zero), zero)
			if err != nil || again.Format(zero) != v.Format(zero) || !slices.Equal(again.List(), list) {
				t.Fatalf("%q prints as %q, which is read as %v, %v", text, v.Format(zero), again, err)
			}
		}
	})
}

func FuzzGrid(f *testing.F) {
	f.Add("64:256:x2", "lstm,gru", "H=4,B=2", "hidden<=64", "naive,cudnnstyle:fused=0", "hidden,batch")
	f.Add("1", "all", "hidden=1Ki,streams=auto", "mem<=16GiB", "a=naive", "")
	f.Fuzz(func(t *testing.T, hidden, cell, point, where, impl, zip string) {
		c, err := ParseCondition(where)
		if err == nil {
			again, err := ParseCondition(c.String())
			if err != nil || again != c {
				t.Fatalf("%q prints as %q, which is read as %v, %v", where, c, again, err)
			}
		}
		if s, err := ParseSpec(impl, nil); err == nil {
			again, err := ParseSpec(s.String(), nil)
			if err != nil || again.String() != s.String() {
				t.Fatalf("%q prints as %q, which is read as %v, %v", impl, s, again, err)
			}
		}
		r := Request{Axes: axes{"hidden": hidden, "cell": cell, "batch": "1,2"}, Where: []string{where}, Exclude: [][]string{{where, where}}, Impl: []string{impl}}
		if point != "" {
			r.Points = []string{point}
		}
		if zip != "" {
			z, err := ParseZip(zip)
			if err != nil {
				return
			}
			r.Zips = []Zip{z}
		}
		g, err := New(r, words())
		if err != nil {
			return
		}
		points, err := g.Points()
		if err != nil {
			return
		}
		if len(points) > MaxPoints || len(points) == 0 {
			t.Fatalf("%d points", len(points))
		}
		for _, p := range points[:1] {
			if min(p.Hidden, p.Input, p.Batch, p.Steps, p.Layers) < 1 || p.Cell == "" {
				t.Fatalf("got %+v", p)
			}
		}
	})
}

// TestUnknownContaining: the error for an unknown word lists the words that contain it.
func TestUnknownContaining(t *testing.T) {
	words := []string{"appleyard-fig1", "appleyard-table1", "martin-fig1", "martin-train", "scan-rates"}
	for word, want := range map[string]string{
		"fig1":    "choose among appleyard-fig1, martin-fig1",
		"Table1":  "choose among appleyard-table1",
		"e1":      "choose among appleyard-fig1, appleyard-table1, martin-fig1, martin-train, scan-rates",
		"zebra99": "choose among appleyard-fig1, appleyard-table1, martin-fig1, martin-train, scan-rates",
		"scan":    "did you mean scan-rates?",
	} {
		if got := Unknown("experiment", word, words).Error(); got != fmt.Sprintf("unknown experiment %q: %s", word, want) {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}

// TestModels: each layer of a model adds the product of the axes that it leaves open, and an axis that
// it sets cannot be given.
func TestModels(t *testing.T) {
	var asked []string
	v := Vocabulary{Impls: []string{"naive"}, Model: func(files, layers []string) ([]map[string]string, error) {
		asked = append(slices.Clone(files), layers...)
		layer := func(cell, hidden, weights string) map[string]string {
			return map[string]string{"cell": cell, "hidden": hidden, "input": "3", "layers": "1", "direction": "both", "projection": "none", "weights": weights}
		}
		return []map[string]string{layer("lstm", "8", "m:a@1"), layer("gru", "16", "m:b@2")}, nil
	}}
	g, err := New(Request{Models: []string{"m.onnx"}, Layers: []string{"a"}, Axes: map[string]string{"batch": "1,2"}}, v)
	if err != nil {
		t.Fatal(err)
	}
	points, err := g.Points()
	if err != nil || len(points) != 4 || !slices.Equal(asked, []string{"m.onnx", "a"}) {
		t.Fatalf("%v, %v; asked for %v", points, err, asked)
	}
	for i, want := range []string{"lstm forward H=8 B=1 T=50 L=1 both I=3 m:a", "lstm forward H=8 B=2 T=50 L=1 both I=3 m:a", "gru forward H=16 B=1 T=50 L=1 both I=3 m:b", "gru forward H=16 B=2 T=50 L=1 both I=3 m:b"} {
		if got := points[i].String(); got != want {
			t.Errorf("point %d is %s, want %s", i, got, want)
		}
	}
	for want, r := range map[string]Request{
		"--hidden has no effect, because every layer of --model sets hidden: remove one": {Models: []string{"m"}, Axes: map[string]string{"hidden": "8"}},
		"--layer names a layer of a model: add --model FILE":                             {Layers: []string{"a"}},
		"--model and --zip both set hidden: remove one":                                  {Models: []string{"m"}, Zips: []Zip{{Axes: []string{"hidden", "batch"}, Rows: [][]string{{"1", "2"}}}}},
	} {
		if _, err := New(r, v); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	v.Model = nil
	if _, err := New(Request{Models: []string{"m"}}, v); err == nil {
		t.Error("a grid without files read a model")
	}
}
