// Package pick finds records by label and point.
package pick

import (
	"slices"

	"rnnbench/record"
)

// Fastest returns the fastest record of several labels at a point, nil if none is ok.
func Fastest(recs []record.Record, labels []string, at func(record.Point) bool) (best *record.Record) {
	for _, l := range labels {
		if r := Find(recs, l, at); r != nil && (best == nil || r.Seconds() < best.Seconds()) {
			best = r
		}
	}
	return best
}

// Find returns the newest ok record of a label at a point.
func Find(recs []record.Record, label string, at func(record.Point) bool) *record.Record {
	for i := len(recs) - 1; i >= 0; i-- {
		r := &recs[i]
		if r.Impl.Label == label && r.Status == record.OK && at(r.Point) {
			return r
		}
	}
	return nil
}

// Points lists the points of recs without repetition, in order of appearance.
func Points(recs []record.Record) []record.Point {
	var out []record.Point
	for _, r := range recs {
		if !slices.Contains(out, r.Point) {
			out = append(out, r.Point)
		}
	}
	return out
}

// At keeps the records of one point.
func At(recs []record.Record, p record.Point) []record.Record {
	var out []record.Record
	for _, r := range recs {
		if r.Point == p {
			out = append(out, r)
		}
	}
	return out
}

// Labels lists the techniques of recs in order of appearance.
func Labels(recs []record.Record) []string {
	var list []string
	for _, r := range recs {
		if l := r.Impl.Label; !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return list
}

// Where keeps the records whose points are wanted.
func Where(recs []record.Record, wanted func(record.Point) bool) []record.Record {
	var out []record.Record
	for _, r := range recs {
		if wanted(r.Point) {
			out = append(out, r)
		}
	}
	return out
}

// Broken returns the newest record of label at a point that ran and has no valid time; nil: none.
func Broken(recs []record.Record, label string, at func(record.Point) bool) *record.Record {
	for i := len(recs) - 1; i >= 0; i-- {
		if r := &recs[i]; r.Impl.Label == label && r.Status.Broken() && at(r.Point) {
			return r
		}
	}
	return nil
}
