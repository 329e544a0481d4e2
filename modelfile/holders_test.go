package modelfile_test

import (
	"reflect"
	"slices"
	"testing"

	"rnnbench/modelfile"
	"rnnbench/rnn"
	"rnnbench/rnn/axis"
)

// TestHolders: tensors are found wherever people put them, under the names that tell them apart.
func TestHolders(t *testing.T) {
	f := formatsOfNumbers()[0]
	p := axis.Point{Cell: "gru", Input: 5, Hidden: 7, Layers: 1}
	want := parametersOf(t, p, f)
	state := func(w *torchWriter, prefix string) string { return w.dict(savedAs(prefix, want)) }
	flat := func(w *torchWriter) (pairs string) {
		for _, s := range savedAs("", want) {
			pairs += text(s.name) + w.tensor(s)
		}
		return pairs
	}
	dict := func(pairs string) string { return "}(" + pairs + "u" }
	module := func(class, parameters, modules string) string {
		return "c" + class + "\n)\x81" + dict(text("training")+"\x88"+text("_parameters")+parameters+text("_modules")+modules) + "b"
	}
	for _, c := range []struct {
		name  string
		value func(w *torchWriter) string
		want  []string
	}{
		{"a checkpoint", func(w *torchWriter) string {
			return dict(text("epoch") + whole(3) + text("state_dict") + state(w, "enc.rnn.") + text("optimizer") + dict(text("state")+dict(whole(0)+state(w, "exp_avg."))))
		}, []string{"state_dict.enc.rnn", "optimizer.state.0.exp_avg"}},
		{"a checkpoint of one", func(w *torchWriter) string {
			return dict(text("epoch") + whole(3) + text("model") + state(w, "rnn.") + text("names") + "](" + text("a") + text("b") + "e")
		}, []string{"rnn"}},
		{"two models", func(w *torchWriter) string {
			return dict(text("net") + dict(text("g")+state(w, "rnn.")+text("d")+state(w, "")))
		}, []string{"g.rnn", "d"}},
		{"dicts in dicts", func(w *torchWriter) string {
			return dict(text("enc") + dict(text("rnn")+dict(flat(w))))
		}, []string{"rnn"}},
		{"a list", func(w *torchWriter) string { return "](" + state(w, "a.") + state(w, "b.") + "e" }, []string{"0.a", "1.b"}},
		{"a tuple", func(w *torchWriter) string { return tuple(state(w, "a."), "N") }, []string{"a"}},
		{"one dict twice", func(w *torchWriter) string {
			return dict(text("last") + state(w, "a.") + "q\x07" + text("best") + "h\x07")
		}, []string{"a"}},
		{"a dict in itself", func(w *torchWriter) string { return "}q\x07(" + text("self") + "h\x07" + flat(w) + "u" }, []string{"rnn"}},
		{"Python 2", func(w *torchWriter) string {
			var pairs string
			for _, s := range savedAs("a.", want) {
				pairs += "](" + text(s.name) + w.tensor(s) + "e"
			}
			return "ccollections\nOrderedDict\n](" + pairs + "e\x85R"
		}, []string{"a"}},
		{"a subclass of dict", func(w *torchWriter) string {
			return called("mine", "Config", whole(1)) + "(" + text("net") + state(w, "a.") + "u"
		}, []string{"a"}},
		{"a module", func(w *torchWriter) string {
			return module("mine\nModel", ordered(), ordered(text("enc"), module("torch.nn.modules.rnn\nGRUCell", ordered(flat(w)), ordered())))
		}, []string{"enc"}},
		{"a module of an old file", func(w *torchWriter) string {
			class := tuple(text("module"), "ctorch.nn.modules.rnn\nGRU\n", text("rnn.py"), text("class GRU")) + "Q"
			return class + ")\x81" + dict(text("_parameters")+ordered(flat(w))+text("_modules")+ordered()) + "b"
		}, []string{"rnn"}},
		{"a module in a checkpoint", func(w *torchWriter) string {
			return dict(text("model") + module("mine\nModel", ordered(), ordered(text("enc"), module("mine\nGRU", ordered(flat(w)), ordered()))))
		}, []string{"enc"}},
		{"TorchScript", func(w *torchWriter) string {
			script := func(class, pairs string) string { return "c__torch__." + class + "\n)\x81" + dict(pairs) + "b" }
			return script("\nModel", text("training")+"\x88"+text("enc")+script("torch.nn.modules.rnn\nGRU", flat(w)+text("_flat_weights")+"]("+flat(w)+"e"))
		}, []string{"enc"}},
	} {
		for _, legacy := range []bool{false, true} {
			w := &torchWriter{numberFormat: f, legacy: legacy}
			held(t, c.name, w.file(t, c.value(w)), c.want, p, want)
		}
	}
}

// held checks that a file holds layers of these names, each at p and with these tensors.
func held(t *testing.T, what string, content []byte, want []string, p axis.Point, tensors []rnn.Tensor) {
	t.Helper()
	file, err := modelfile.Read(at(t, "a.pt", content))
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	var names []string
	for _, l := range file.Layers {
		names = append(names, l.Name)
		if l.Point != p || !reflect.DeepEqual(l.Tensors, tensors) || l.Note != "" {
			t.Errorf("%s: %s is %+v (%s%s)", what, l.Name, l.Point, l.Declined, l.Note)
		}
	}
	if !slices.Equal(names, want) {
		t.Errorf("%s: layers %q, not %q", what, names, want)
	}
}
