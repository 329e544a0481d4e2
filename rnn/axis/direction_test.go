package axis

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestDirection: records have the word, early ones do not, and both are the same point.
func TestDirection(t *testing.T) {
	var old, forward, both Point
	for text, p := range map[string]*Point{`{"layers": 3}`: &old, `{"layers": 3, "direction": "forward"}`: &forward, `{"layers": 3, "direction": "both"}`: &both} {
		if err := json.Unmarshal([]byte(text), p); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if old != forward || old.Reads() != 3 || both.Reads() != 6 || both == old {
		t.Errorf("%+v, %+v and %+v", old, forward, both)
	}
	for word, p := range map[string]Point{"forward": old, "both": both} {
		text, err := json.Marshal(p)
		if err != nil || !strings.Contains(string(text), `"direction":"`+word+`"`) {
			t.Errorf("%s, %v: want %s", text, err, word)
		}
	}
	if err := json.Unmarshal([]byte(`{"direction": "sideways"}`), new(Point)); err == nil || !strings.Contains(err.Error(), "write forward, reverse, both or alternate") {
		t.Error(err)
	}
	if old.String() != forward.String() || !strings.Contains(both.String(), " both") {
		t.Errorf("%v, %v and %v", old, forward, both)
	}
}
