package torch_test

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"rnnbench/rnn/torch"
)

// FuzzNPZ: whatever arrays are called and of whatever shape, what was written reads back.
func FuzzNPZ(f *testing.F) {
	f.Add("h0", 2, 3, float32(1.5), "text")
	f.Add("a/b", 0, 1, float32(math.MaxFloat32), "naïve\x00")
	f.Fuzz(func(t *testing.T, name string, rows, cols int, value float32, text string) {
		rows, cols = rows&63, cols&63
		if value != value {
			return // NaN is equal to nothing
		}
		values := make([]float32, rows*cols)
		for i := range values {
			values[i] = value
		}
		var b bytes.Buffer
		in := []torch.Array{{Name: name, Shape: []int{rows, cols}, Values: values}, {Name: name + "2", Shape: []int{2}, Values: []int64{int64(rows), -1}}}
		if torch.WriteNPZ(&b, in) != nil {
			return
		}
		out, err := readNPZ(b.Bytes())
		if err != nil || !reflect.DeepEqual(out, in) {
			t.Errorf("%q %d×%d: %v: %v", name, rows, cols, err, out)
		}
	})
}
