package training

import (
	"rnnbench/train/data"
	"rnnbench/tuner/agenda"
)

// Readable opens the data of each network once, before anything is measured. Unreadable data would
// fail for all networks alike.
func Readable(networks []agenda.Network) error {
	seen := map[string]bool{}
	for _, n := range networks {
		if seen[n.Training.Data] {
			continue
		}
		seen[n.Training.Data] = true
		if _, err := data.Open(n.Training.Data, data.Options{Batch: n.Point.Batch, Steps: n.Point.Steps}); err != nil {
			return err
		}
	}
	return nil
}
