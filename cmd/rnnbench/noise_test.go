package main

import (
	"bytes"
	"strings"
	"testing"

	"rnnbench/record"
	"rnnbench/tuner/config"
)

// noisyRecords returns records of two techniques at two points that are too noisy to compare.
func noisyRecords() []record.Record {
	var recs []record.Record
	for hidden := 8; hidden <= 16; hidden += 8 {
		for i, name := range []string{"naive", "cudnnstyle"} {
			lo, hi := 0.5, 5.0
			recs = append(recs, record.Record{
				Point: record.Point{Hidden: hidden}, Impl: record.Impl{Name: name}, Status: record.OK, Warnings: []string{record.WarnNoisy},
				Stats: &record.Stats{Median: float64(1 + i), Lo: &lo, Hi: &hi},
			})
		}
	}
	return recs
}

// TestNoiseIsTold: a sweep or a tune of noisy records ends with a note about the noise.
func TestNoiseIsTold(t *testing.T) {
	var said bytes.Buffer
	p := &program{out: &bytes.Buffer{}, err: &said}
	recs := noisyRecords()
	if err := conclude(p, &ending{records: recs, planned: len(recs)}, config.Config{}, ""); err != nil {
		t.Fatal(err)
	}
	if want := "0 of 2 winners are clear; 4 of 4 records are noisy: run rnnbench doctor\n"; !strings.HasSuffix(said.String(), want) {
		t.Errorf("said %q, want %q", said.String(), want)
	}
	recs[0].Warnings, recs[1].Warnings = nil, nil
	said.Reset()
	tellNoise(p, recs)
	if said.Len() > 0 {
		t.Errorf("half of the records are noisy: %q", said.String())
	}
}
