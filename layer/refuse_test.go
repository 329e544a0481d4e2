package layer_test

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"rnnbench/device"
	"rnnbench/layer"
	"rnnbench/rnn/schedule"
)

// TestRefusals: each mistake gets one sentence that says what is wrong.
func TestRefusals(t *testing.T) {
	d := open(t)
	for _, test := range []struct{ device, want string }{
		{"gpu", `unknown device "gpu"`}, {"cpu:0", "at least one thread"}, {"cpu:x", "use cpu, cpu:4 or cuda:0"}, {"cuda:0", "built without CUDA"},
	} {
		refused(t, test.want, func() error { _, err := layer.Open(test.device, ""); return err })
	}
	for _, test := range []struct{ description, want string }{
		{"", "write key=value pairs"}, {"cell=lstn,input=1,hidden=1", "lstm"}, {"input=1,hiden=1", "hidden"}, {"input=0,hidden=1", "at least 1"},
		{"input=1,input=2", "twice"}, {"input=x", "whole number"}, {"input=1,hidden=2,direction=up", "forward"}, {"input=1,hidden=2,precision=fp8", "fp16"},
		{"cell=no.cell,input=1,hidden=1", "no such file"}, {"input=1,hidden=2,batchfirst=2", "batchfirst"}, {strings.Repeat("x", 1<<17), "at most"},
	} {
		refused(t, test.want, func() error { _, err := d.NewLayer(test.description); return err })
	}
	l, err := d.NewLayer("input=3,hidden=4")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		request layer.Request
		want    string
	}{
		{layer.Request{Batch: 0, Steps: 1, Pass: "forward", Technique: "auto"}, "batch is 0"},
		{layer.Request{Batch: 1, Steps: 1, Pass: "both", Technique: "auto"}, "pass"},
		{layer.Request{Batch: 1, Steps: 1, Pass: "forward", Technique: "fast"}, "technique"},
		{layer.Request{Batch: 1, Steps: 1, Pass: "forward", Technique: "persistent:nope=1"}, `persistent: unknown knob "nope"`},
		{layer.Request{Batch: 1, Steps: 1, Pass: "forward", Technique: "cudnnstyle:fused=7"}, "knob fused cannot be 7"},
		{layer.Request{Batch: 2, Steps: 3, Pass: "forward", Technique: "auto", Lengths: []int{2, 2}}, "longest"},
		{layer.Request{Batch: 2, Steps: 3, Pass: "forward", Technique: "auto", Lengths: []int{0, 3}}, "sequence 0"},
		{layer.Request{Batch: 2, Steps: 3, Pass: "forward", Technique: "auto", Lengths: []int{3}}, "length"},
	} {
		refused(t, test.want, func() error { _, err := l.Plan(test.request); return err })
	}
	if _, err := l.Plan(layer.Request{Batch: 1, Steps: 1, Pass: "train", Technique: "scc"}); !errors.Is(err, schedule.ErrUnsupported) {
		t.Errorf("scc trains for a host program: %v", err)
	}
	narrow, err := d.NewLayer("input=3,hidden=4,precision=int8")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := narrow.Plan(layer.Request{Batch: 1, Steps: 1, Pass: "train", Technique: "naive"}); !errors.Is(err, schedule.ErrUnsupported) || strings.Count(err.Error(), "unsupported") > 1 {
		t.Errorf("int8 trains for a host program: %v", err)
	}
	p, err := l.Plan(layer.Request{Batch: 1, Steps: 2, Pass: "train", Technique: "naive"})
	if err != nil {
		t.Fatal(err)
	}
	value := make([]float32, 100)
	at := unsafe.Pointer(&value[0])
	refused(t, "no memory is bound to input", func() error { return p.Forward(0) })
	refused(t, "no forward pass", func() error { return p.Backward(0) })
	refused(t, "inputs", func() error { return p.Bind("inputs", at, device.Float32) })
	refused(t, "number format", func() error { return p.Bind("input", at, 3) })
	refused(t, "aligned", func() error { return p.Bind("input", unsafe.Add(at, 1), device.Float32) })
	h := hosted(t, p)
	if err := p.Bind("output", nil, device.Float32); err != nil {
		t.Fatal(err)
	}
	refused(t, "output must have memory", func() error { return p.Forward(0) })
	h.bind(t, "output")
	h.run(t)
	if err := errors.Join(l.Close(), l.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	refused(t, "closed", func() error { return p.Forward(0) })
}

func refused(t *testing.T, want string, f func() error) {
	t.Helper()
	if err := f(); !errors.Is(err, layer.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one sentence with %q", err, want)
	}
}

// FuzzDescription: no description makes the library panic or take much memory.
func FuzzDescription(f *testing.F) {
	for _, s := range []string{"cell=lstm,input=5,hidden=7", "input=1,hidden=2,direction=both,precision=bf16,batchfirst=1", "heads=2,projection=1,layers=3,hidden=4,input=1"} {
		f.Add(s)
	}
	d, err := layer.Open("cpu:1", "test")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, ".cell") {
			return // it would read a file
		}
		l, err := d.NewLayer(text)
		if err != nil {
			if !errors.Is(err, layer.ErrInvalid) {
				t.Errorf("%q: %v is no mistake of the caller", text, err)
			}
			return
		}
		if _, err := l.Describe(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}
