package quantity

import "rnnbench/record"

// Merge joins the records of runs. If two runs have records of the same key, every label gets its
// run's label in front, so that neither hides the other.
func Merge(sets []record.Set) []record.Record {
	owner := map[string]int{}
	clash := false
	for i, s := range sets {
		for j := range s.Records {
			key := s.Records[j].Key()
			if o, ok := owner[key]; ok && o != i {
				clash = true
			}
			owner[key] = i
		}
	}
	var all []record.Record
	for _, s := range sets {
		for _, r := range s.Records {
			if clash {
				r.Impl.Label = s.Label + ": " + Label(&r)
			}
			all = append(all, r)
		}
	}
	return all
}
