package tuner

import (
	"rnnbench/model"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// WorkOf describes one step of a layer at a point for the model.
func WorkOf(p record.Point) (model.Work, error) {
	bytes := 4.0 // of a weight
	switch p.Precision {
	case rnn.BF16.String(), rnn.FP16.String():
		bytes = 2
	case rnn.INT8.String():
		bytes = 1
	}
	return model.Recurrent(cell.Lookup(p.Cell), p.Hidden, p.Batch, bytes)
}

// Predictions returns the predicted times on m of each variant at each point.
func Predictions(m *model.Machine, variants []model.Variant, points []record.Point) ([]model.Prediction, error) {
	var list []model.Prediction
	for _, v := range variants {
		for _, at := range points {
			w, err := WorkOf(at)
			if err != nil {
				return nil, err
			}
			x, err := v.Predict(m, w)
			if err != nil {
				return nil, err
			}
			x.Cell, x.Precision = at.Cell, at.Precision
			if v.Half {
				x.Precision = rnn.FP16.String()
			}
			list = append(list, x)
		}
	}
	return list, nil
}
