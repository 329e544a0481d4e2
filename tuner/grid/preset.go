package grid

import (
	"fmt"
	"slices"
	"strconv"
)

// A Preset is a named set of points: the union of products of axes. An axis that
// the user sets replaces the preset's.
type Preset struct {
	Name   string
	Doc    string
	Source string
	Blocks []map[string]string // each a product of axes in the grammar of the package
}

// Presets lists the presets in the order of help.
func Presets() []Preset {
	return slices.Concat(ownPresets(), productionPresets(), rlPresets(), deepBench(), papers(), oneDNN())
}

// ownPresets returns the presets that are of this program alone.
func ownPresets() []Preset {
	return []Preset{
		{
			Name: "quick", Doc: "a minute on a laptop: two cells, small sizes, inference and training",
			Source: "rnnbench",
			Blocks: []map[string]string{{"cell": "rnn-tanh,lstm", "pass": "forward,train", "hidden": "128,256", "batch": "1,16", "steps": "25"}},
		},
	}
}

// deepBench returns the shapes of Baidu's DeepBench.
func deepBench() []Preset {
	return []Preset{
		{
			Name: "deepbench-train", Doc: "DeepBench's training shapes; vanilla is rnn-relu",
			Source: "github.com/baidu-research/DeepBench code/kernels/rnn_problems.h, training_set",
			Blocks: blocks("train", []row{
				{"rnn-relu", "1760,2048,2560", "16,32,64,128", "50"},
				{"lstm", "512,1024,2048,4096", "16,32,64,128", "25"},
				{"lstm", "1536", "8,16,32", "50"},
				{"lstm", "256", "16,32,64", "150"},
				{"gru", "2816", "32", "750,375,187"}, // 1500 is commented out in the source
				{"gru", "2048,1536,2560", "32", "1500,750,375,187"},
				{"gru", "512", "32", "1"},
				{"gru", "1024", "32,64", "1500"},
			}),
		},
		{
			Name: "deepbench-infer", Doc: "DeepBench's server inference shapes",
			Source: "github.com/baidu-research/DeepBench code/kernels/rnn_problems.h, inference_server_set",
			Blocks: blocks("forward", []row{
				{"lstm", "512,1024,2048", "1,2,4", "25"},
				{"lstm", "1536", "1,2,4", "50"},
				{"lstm", "256", "1,2,4", "150"},
				{"gru", "2816,2048,1536,2560", "1,2,4", "1500,750,375,187"},
				{"gru", "512", "1,2,4", "1"},
				{"gru", "1024", "1,2,4", "1500"},
			}),
		},
		{
			Name: "deepbench-device", Doc: "DeepBench's phone inference shapes; vanilla is rnn-relu",
			Source: "github.com/baidu-research/DeepBench code/kernels/rnn_problems.h, inference_device_set",
			Blocks: blocks("forward", []row{
				{"rnn-relu", "32", "1", "672"},
				{"rnn-relu", "64", "1", "96"},
				{"lstm", "256", "1", "150"},
			}),
		},
	}
}

// papers returns the shapes of the papers that are reproduced.
func papers() []Preset {
	return []Preset{
		{
			Name: "appleyard", Doc: "four LSTM layers over hidden size and minibatch; 512 and 64 are those of Table 1",
			Source: "Appleyard, Kočiský, Blunsom 2016, Figure 1 and Table 1 (arXiv:1604.01946)",
			Blocks: []map[string]string{{"cell": "lstm", "pass": "forward", "layers": "4", "hidden": "256:4096:x2", "batch": "32,64,128,256", "steps": "100"}},
		},
		{
			Name: "persistent-rnn", Doc: "one layer of 1152 units over minibatch, and over time steps at minibatch 4",
			Source: "Diamos et al. 2016, Figures 3 and 4",
			Blocks: blocks("forward", []row{
				{"rnn-relu", "1152", "1:64:x2", "256"},
				{"rnn-relu", "1152", "4", "1:256:x2"},
			}),
		},
		{
			Name: "hwang", Doc: "BPTT(2h; h) on 1024 frames: N sequences of h = 1024/N steps, for a language model and an LSTM layer; set history none for techniques without history",
			Source: "Hwang and Sung 2015, Figures 3 and 4 (arXiv:1503.02852)",
			Blocks: hwang(),
		},
		{
			Name: "martin", Doc: "two layers of 256 units over length and minibatch, at most 131072 events; set the cell to compare a linear one",
			Source: "Martin and Cundy 2017, Table of throughput (arXiv:1709.04057)",
			Blocks: martin(),
		},
	}
}

// oneDNN returns the shapes of oneDNN's benchmark driver.
func oneDNN() []Preset {
	return []Preset{
		{
			Name: "benchdnn-train", Doc: "oneDNN's training shapes whose states all have one width",
			Source: "oneDNN tests/benchdnn/inputs/rnn/shapes_training, without the shape whose states differ in width",
			Blocks: benchdnn("train", []dnnShape{
				{1, 1, 128, 512, 512}, {2, 2, 128, 1024, 1024}, {8, 1, 128, 1024, 2048}, {1, 1, 128, 1024, 2048}, {1, 50, 32, 1760, 1760},
				{1, 100, 32, 1760, 1760}, {1, 200, 32, 1760, 1760}, {1, 50, 64, 500, 500}, {1, 629, 128, 128, 128}, {1, 952, 128, 128, 128},
				{1, 10, 32, 128, 512},
			}),
		},
		{
			Name: "benchdnn-infer", Doc: "oneDNN's inference shapes whose states all have one width",
			Source: "oneDNN tests/benchdnn/inputs/rnn/shapes_inference, without the shape whose states differ in width",
			Blocks: benchdnn("forward", []dnnShape{
				{1, 30, 1, 512, 512}, {7, 30, 1, 1024, 1024}, {8, 1, 1, 1024, 2048}, {1, 1, 1, 1024, 2048}, {1, 1, 640, 1024, 2048},
				{1, 50, 1, 1760, 1760}, {1, 100, 1, 1760, 1760}, {1, 200, 1, 1760, 1760}, {1, 50, 1, 500, 500}, {1, 629, 1, 128, 128},
				{1, 10, 1, 128, 512},
			}),
		},
	}
}

// presetNamed finds a preset.
func presetNamed(name string) (Preset, error) {
	presets := Presets()
	var names []string
	for _, p := range presets {
		names = append(names, p.Name)
	}
	if i := slices.Index(names, name); i >= 0 {
		return presets[i], nil
	}
	return Preset{}, Unknown("preset", name, names)
}

// A row is a line of a paper's or a program's list of shapes.
type row struct{ cell, hidden, batch, steps string }

func blocks(pass string, rows []row) []map[string]string {
	var list []map[string]string
	for _, r := range rows {
		list = append(list, map[string]string{"cell": r.cell, "pass": pass, "hidden": r.hidden, "batch": r.batch, "steps": r.steps})
	}
	return list
}

// hwang divides 1024 new frames among 1 to 1024 sequences. The history has as many steps as each
// sequence.
func hwang() []map[string]string {
	var list []map[string]string
	add := func(cell, onehot, input, hidden, output string) {
		for n := 1; n <= 1024; n *= 2 {
			steps := strconv.Itoa(1024 / n)
			list = append(list, map[string]string{"cell": cell, "pass": "train", "onehot": onehot, "input": input, "hidden": hidden,
				"output": output, "batch": strconv.Itoa(n), "steps": steps, "history": steps})
		}
	}
	add("rnn-tanh,lstm-c", "true", "38000", "512", "20000")
	for _, size := range []string{"1024", "2048", "4096"} {
		add("lstm-peephole", "false", size, size, size)
	}
	return list
}

// martin pairs each length with the minibatches that the paper's table fills.
func martin() []map[string]string {
	var list []map[string]string
	for steps := 256; steps <= 65536; steps *= 2 {
		list = append(list, map[string]string{"cell": "lstm", "pass": "train", "layers": "2", "input": "41", "hidden": "256", "output": "2312",
			"steps": strconv.Itoa(steps), "batch": fmt.Sprintf("1:%d:x2", martinBatch(steps))})
	}
	return list
}

// martinBatch is the largest minibatch of a length before memory ran out.
func martinBatch(steps int) int {
	return min(256, 1<<17/steps)
}

// A dnnShape is benchdnn's lLtTmbBsicHslcI.
type dnnShape struct{ layers, steps, batch, hidden, input int }

func benchdnn(pass string, shapes []dnnShape) []map[string]string {
	var list []map[string]string
	for _, s := range shapes {
		b := map[string]string{"cell": "lstm", "pass": pass, "layers": strconv.Itoa(s.layers), "steps": strconv.Itoa(s.steps),
			"batch": strconv.Itoa(s.batch), "hidden": strconv.Itoa(s.hidden), "input": strconv.Itoa(s.input)}
		if s.input == s.hidden {
			b["input"] = "hidden"
		}
		list = append(list, b)
	}
	return list
}

// CheckPreset reports whether there is a preset of that name.
func CheckPreset(name string) error {
	_, err := presetNamed(name)
	return err
}
