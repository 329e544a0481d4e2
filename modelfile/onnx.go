package modelfile

import (
	"fmt"
	"io"
	"math"
	"strings"

	"rnnbench/internal/safe"
	"rnnbench/modelfile/onnx"
	"rnnbench/rnn"
)

// Limits of ONNX models. Protocol buffers cannot be larger.
const (
	mostONNXBytes  = math.MaxInt32
	mostONNXLayers = 4096
)

// isONNX reports whether a file is an ONNX model, by its name or its first fields.
func isONNX(s source) bool {
	if strings.HasSuffix(strings.ToLower(s.path), ".onnx") {
		return true
	}
	head := make([]byte, min(s.size, 4096))
	n, _ := s.ReadAt(head, 0)
	return onnx.Starts(head[:n])
}

// readONNX reads the recurrent operators of an ONNX model, those in bodies and functions included. An
// operator is a layer. That of a function is one for each call.
func readONNX(s source) ([]Layer, error) {
	if s.size > mostONNXBytes {
		return nil, fmt.Errorf("an ONNX model has at most %d bytes beside its external data", mostONNXBytes)
	}
	data := make([]byte, s.size)
	if _, err := io.ReadFull(io.NewSectionReader(s, 0, s.size), data); err != nil {
		return nil, err
	}
	model, err := onnx.Parse(data, onnx.ExternalData(s.path))
	if err != nil {
		return nil, err
	}
	r := onnxReader{model: model, parameters: map[onnxForm][]rnn.Tensor{}}
	err = model.Walk(func(n *onnx.Node) error {
		l, ok := r.layer(n)
		switch {
		case !ok:
			return nil
		case len(r.layers) == mostONNXLayers:
			return fmt.Errorf("it has more than %d recurrent layers", mostONNXLayers)
		}
		r.layers = append(r.layers, l)
		r.names = append(r.names, onnxName{onnxText(n.Name), onnxText(n.Path())})
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.name()
	return r.layers, nil
}

// onnxText is the end of text from a file that is too long for a name.
func onnxText(name string) string {
	const most = 500
	if len(name) > most {
		name = "…" + name[len(name)-most:]
	}
	return safe.Text(name)
}

// An onnxName is what a layer can be called.
type onnxName struct{ own, path string }

// name gives layers the names of their nodes where these are unique, and else those of their places.
func (r *onnxReader) name() {
	count, taken := map[string]int{}, map[string]bool{}
	for _, n := range r.names {
		count[n.own]++
	}
	for i, n := range r.names {
		name := n.own
		if name == "" || count[name] > 1 {
			name = n.path
		}
		unique := name
		for taken[unique] {
			count[name]++
			unique = fmt.Sprintf("%s#%d", name, count[name])
		}
		taken[unique] = true
		r.layers[i].Name = unique
	}
}
