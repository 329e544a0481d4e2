package record

import "slices"

// Untime removes all times from a record whose single run was not a measurement.
func (r *Record) Untime() {
	r.Samples, r.Stats, r.Rate, r.Floor, r.Disturbance = nil, nil, nil, nil, nil
	r.Warnings = slices.DeleteFunc(r.Warnings, func(w string) bool { return w != WarnPart })
}
