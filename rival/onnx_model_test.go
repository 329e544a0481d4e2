package rival_test

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// fields of the messages of an ONNX model that hold messages, by message and number: the field's
// message. Fields of messages that are not here hold numbers, text or values.
var fields = map[string]map[int]string{
	"model":       {7: "graph", 8: "opset"},
	"graph":       {1: "node", 5: "tensor", 11: "value", 12: "value"},
	"node":        {5: "attribute"},
	"value":       {2: "type"},
	"type":        {1: "tensor type"},
	"tensor type": {2: "shape"},
	"shape":       {1: "dimension"},
}

// known are the fields of each message that are written; raw is the one that holds float32 or int64.
var known = map[string][]int{
	"model": {1, 2, 7, 8}, "opset": {1, 2}, "graph": {1, 2, 5, 11, 12}, "node": {1, 2, 3, 4, 5}, "attribute": {1, 3, 4, 8, 9, 20},
	"tensor": {1, 2, 8, 9}, "value": {1, 2}, "type": {1}, "tensor type": {1, 2}, "shape": {1}, "dimension": {1},
}

// describe writes the fields of a message of Protocol Buffers, one a line.
func describe(out *strings.Builder, message, indent string, data []byte) error {
	float := false
	for len(data) > 0 {
		key, n := binary.Uvarint(data)
		field := int(key >> 3)
		if n <= 0 || !slices.Contains(known[message], field) {
			return fmt.Errorf("%s has field %d of kind %d", message, field, key&7)
		}
		v, m := binary.Uvarint(data[n:])
		if m <= 0 {
			return errors.New("a number is cut short")
		}
		data = data[n+m:]
		if key&7 == 0 {
			fmt.Fprintf(out, "%s%s %d: %d\n", indent, message, field, v)
			float = float || message == "tensor" && field == 2 && v == 1
			continue
		}
		if key&7 != 2 || v > uint64(len(data)) {
			return fmt.Errorf("%s has field %d of kind %d and %d bytes", message, field, key&7, v)
		}
		body := data[:v]
		data = data[v:]
		switch inner := fields[message][field]; {
		case inner != "":
			fmt.Fprintf(out, "%s%s %d:\n", indent, message, field)
			if err := describe(out, inner, indent+"  ", body); err != nil {
				return err
			}
		case message == "tensor" && field == 9:
			fmt.Fprintf(out, "%s%s %d:%s\n", indent, message, field, numbers(body, float))
		default:
			fmt.Fprintf(out, "%s%s %d: %q\n", indent, message, field, body)
		}
	}
	return nil
}

func numbers(b []byte, float bool) (text string) {
	for ; float && len(b) >= 4; b = b[4:] {
		text += fmt.Sprintf(" %g", math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	for ; !float && len(b) >= 8; b = b[8:] {
		text += fmt.Sprintf(" %d", binary.LittleEndian.Uint64(b))
	}
	return text
}

// TestONNXModel compares the models that rivals/onnx_model.py writes with a golden file: operators,
// attributes, the order of gates and peepholes, and what goes from layer to layer. The value of
// a parameter is its place in its array, and 100 more for each array before.
func TestONNXModel(t *testing.T) {
	const program = `
import struct, sys
sys.path.insert(0, "../rivals"); sys.dont_write_bytecode = True
import onnx_model
cell, states, gates, peeps, layers, direction, lengths = eval(sys.argv[1])
point = {"cell": cell, "states": states, "hidden": 1, "input": 2, "layers": layers, "batch": 2, "steps": 3, "direction": direction}
point.update({"lengths": [3, 1]} if lengths else {})
ways, arrays = onnx_model.ways_of(point), {}
def add(name, *shape):
    n = shape[0] * (shape[1] if len(shape) > 1 else 1)
    arrays[name] = shape, struct.pack(f"<{n}f", *(100 * len(arrays) + i for i in range(n)))
for l in range(layers):
    for w in ways:
        add(f"weight_ih_l{l}{w}", gates, 2 if l == 0 else len(ways)), add(f"weight_hh_l{l}{w}", gates, 1)
        add(f"bias_ih_l{l}{w}", gates), add(f"bias_hh_l{l}{w}", gates)
        if peeps: add(f"peephole_l{l}{w}", peeps, 1)
sys.stdout.buffer.write(onnx_model.model(point, arrays)[0])
`
	if exec.Command("python3", "-c", "import sys; assert sys.version_info >= (3, 8)").Run() != nil {
		t.Skip("there is no python3 here")
	}
	var out strings.Builder
	for _, point := range []string{
		`("lstm-peephole", ["h", "c"], 4, 3, 2, "both", True)`,
		`("gru", ["h"], 3, 0, 2, "", False)`,
		`("gru-before", ["h"], 3, 0, 1, "reverse", False)`,
		`("rnn-relu", ["h"], 1, 0, 1, "both", False)`,
	} {
		cmd := exec.Command("python3", "-c", program, point)
		var said strings.Builder
		cmd.Stderr = &said
		model, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", point, err, said.String())
		}
		fmt.Fprintln(&out, point)
		if err := describe(&out, "model", "  ", model); err != nil {
			t.Errorf("%s: %v", point, err)
		}
	}
	golden := filepath.Join("testdata", "onnx_model.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != string(want) {
		t.Errorf("the models differ from %s; go test ./rival -update rewrites it:\n%s", golden, got)
	}
}
