package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"rnnbench/tuner/progress"
)

// FuzzProgress: any message becomes one JSON object on its own line.
func FuzzProgress(f *testing.F) {
	f.Add("warning: \x1b[2J\nx", "na\u202eive", 1.5)
	f.Fuzz(func(t *testing.T, text, impl string, seconds float64) {
		var b bytes.Buffer
		p := &program{err: &b, progress: progressJSON, start: time.Now()}
		p.sender().Send(progress.Message{Event: "record", Impl: impl, Text: text, Seconds: seconds})
		p.Note("%s", text)
		lines := bytes.SplitAfter(b.Bytes(), []byte("\n"))
		if len(lines) != 3 || len(lines[2]) > 0 {
			t.Fatalf("%q", b.Bytes())
		}
		for _, l := range lines[:2] {
			var m progress.Message
			if err := json.Unmarshal(l, &m); err != nil {
				t.Errorf("%q: %v", l, err)
			}
		}
	})
}
