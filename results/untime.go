package results

import "slices"

// Untime removes what a record says of times: its one run was no measurement.
func (r *Record) Untime() {
	r.Samples, r.Stats, r.Rate, r.Floor = nil, nil, nil, nil
	r.Warnings = slices.DeleteFunc(r.Warnings, func(w string) bool { return w != WarnPart })
}
