package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"rnnbench/internal/exit"
)

// modelFile writes a safetensors file of zeros: names and the rows and columns of tensors.
func modelFile(t *testing.T, file string, tensors ...any) {
	t.Helper()
	var header []string
	end := 0
	for i := 0; i < len(tensors); i += 3 {
		rows, cols := tensors[i+1].(int), tensors[i+2].(int)
		header = append(header, fmt.Sprintf(`%q:{"dtype":"F32","shape":[%d,%d],"data_offsets":[%d,%d]}`, tensors[i], rows, cols, end, end+4*rows*cols))
		end += 4 * rows * cols
	}
	text := "{" + strings.Join(header, ",") + "}"
	content := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	if err := os.WriteFile(file, append(content, make([]byte, end)...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestListLayers: all layers of a file are listed, on 80 columns, also those that cannot be measured.
func TestListLayers(t *testing.T) {
	t.Chdir(t.TempDir())
	const long = "module.encoder.bidirectional_stack.transducer_layers.%d.recurrent."
	modelFile(t, "m.safetensors",
		fmt.Sprintf(long, 0)+"weight_ih_l0", 12, 5, fmt.Sprintf(long, 0)+"weight_hh_l0", 12, 4, // a GRU
		fmt.Sprintf(long, 1)+"weight_ih_l0", 16, 4, fmt.Sprintf(long, 1)+"weight_hh_l0", 16, 2, fmt.Sprintf(long, 1)+"weight_hr_l0", 2, 4,
		"a.weight_ih", 4, 5, "a.weight_hh", 4, 4, "b.weight_ih", 4, 5, "b.weight_hh", 4, 4, // simple units
		"shard.weight_ih_l0", 4, 5)
	o := rnnbench(t, "list layers --model m.safetensors")
	o.want(t, exit.Done, nil, nil)
	if want := `m.safetensors (safetensors)
#  layer                                cell      I  H  L  way      proj  params
─  ───────────────────────────────────  ────────  ─  ─  ─  ───────  ────  ──────
1  module.encoder.bidirectional_stack.  gru       5  4  1  forward           132
   transducer_layers.0.recurrent [1]
2  module.encoder.bidirectional_stack.  lstm      4  4  1  forward     2     136
   transducer_layers.1.recurrent [1]
3  a [2]                                rnn-tanh  5  4  1  forward            44
4  b [2]                                rnn-tanh  5  4  1  forward            44
5  shard [3]
[1] There are no biases: they are taken as 0.
[2] Tanh is assumed: the file does not say whether the units have tanh or relu;
    there are no biases: they are taken as 0.
[3] Not measured: weight_hh_l0 is missing.
`; o.out != want {
		t.Errorf("it prints\n%s\nnot\n%s", o.out, want)
	}
	o = rnnbench(t, "list layers --model m.safetensors -o json")
	var rows []map[string]any
	if err := json.Unmarshal([]byte(o.out), &rows); err != nil || len(rows) != 5 {
		t.Fatalf("%v: %s", err, o.out)
	}
	for i, want := range []string{
		"map[cell:gru declined: direction:forward hidden:4 input:5 layer:" + fmt.Sprintf(long, 0)[:len(long)-2] + " layers:1 note:there are no biases: they are taken as 0 number:1 operator: parameters:132 projection:0]",
		"map[cell:lstm declined: direction:forward hidden:4 input:4 layer:" + fmt.Sprintf(long, 1)[:len(long)-2] + " layers:1 note:there are no biases: they are taken as 0 number:2 operator: parameters:136 projection:2]",
	} {
		if got := fmt.Sprint(rows[i]); got != want {
			t.Errorf("row %d is %s, not %s", i, got, want)
		}
	}
	if r := rows[4]; r["declined"] != "weight_hh_l0 is missing" || r["cell"] != nil || r["parameters"] != nil {
		t.Errorf("a layer that cannot be measured is %v", r)
	}
	rnnbench(t, "list layers --model m.safetensors -o csv").want(t, exit.Done, []string{"\n3,a,,rnn-tanh,5,4,1,forward,0,44,,tanh is assumed"}, nil)
	rnnbench(t, "list layers").want(t, exit.Usage, nil, []string{"list layers needs the file of a model: name it with --model\nhint: rnnbench list layers --model FILE"})
	rnnbench(t, "list cells --model m.safetensors").want(t, exit.Usage, nil, []string{"--model works only with list layers\nhint: rnnbench list layers --model m.safetensors"})
	rnnbench(t, "list layers --model none.pt").want(t, exit.Usage, nil, []string{"none.pt: no such file or directory"})
	if err := os.WriteFile("text.pt", []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "list layers --model text.pt").want(t, exit.Usage, nil, []string{"text.pt: it is no file of torch.save"})
}
