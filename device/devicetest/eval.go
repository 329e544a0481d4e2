package devicetest

import (
	"fmt"
	"math"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// values is a schedule's memory in double precision: the elements of each matrix, by ID.
type values [][]float64

func newValues(s *schedule.Schedule) values {
	var v values
	for _, m := range s.Matrices {
		v = append(v, make([]float64, m.Elements()))
	}
	return v
}

// at returns an element of a view. A view of one row stands for any number of equal rows.
func (v values) at(w schedule.View, i, j int) *float64 {
	if w.Rows == 1 {
		i = 0
	}
	return &v[w.M.ID][(w.Row+i)*w.M.Cols+w.Col+j]
}

// eval runs one operation in the plainest way. This suite takes its results as the truth.
func (v values) eval(op schedule.Op) {
	switch op := op.(type) {
	case schedule.Gemm:
		v.gemm(op)
	case schedule.Pack:
		each(op.Dst, func(i, j int) {
			if op.Trans {
				*v.at(op.Dst, i, j) = *v.at(op.Src, j, i)
			} else {
				*v.at(op.Dst, i, j) = *v.at(op.Src, i, j)
			}
		})
	case schedule.Map:
		args := op.Args()
		each(op.Out, func(i, j int) {
			var arg [2]float64
			for k, a := range args {
				arg[k] = *v.at(a, i, j)
			}
			*v.at(op.Out, i, j) = (&cell.Instr{Op: op.Op, Value: op.Value}).Eval(arg[0], arg[1])
		})
	case schedule.MapChain:
		for _, m := range op.Steps {
			v.eval(m)
		}
	case schedule.SumRows:
		sumRows(v, op)
	case schedule.Cell:
		v.cell(op)
	case schedule.CellBackward:
		v.cellBack(op)
	case schedule.Persistent:
		v.persistent(op)
	case schedule.PersistentBackward:
		through := op.Cell.Through
		for t := op.Steps - 1; t >= 0; t-- {
			v.eval(op.StepBack(t))
			v.eval(schedule.Gemm{A: op.Recurrent(t), B: op.R, C: op.Carry[through], Accumulate: op.Cell.DirectPrev(through)})
		}
	case schedule.Scan:
		for t := range op.Steps {
			v.eval(op.Step(t))
		}
	case schedule.ScanBackward:
		for t := op.Steps - 1; t >= 0; t-- {
			v.eval(op.StepBack(t))
		}
	case schedule.Vendor:
		v.vendor(op)
	case schedule.VendorBackward:
		v.vendorBackward(op)
	case schedule.Gather:
		each(op.Out, func(i, j int) { *v.at(op.Out, i, j) = *v.at(op.Table.Band(int(*v.at(op.Index, i, 0)), 1), 0, j) })
	case schedule.Scatter:
		each(op.Src, func(i, j int) { *v.at(op.Table.Band(int(*v.at(op.Index, i, 0)), 1), 0, j) += *v.at(op.Src, i, j) })
	case schedule.SoftmaxLoss:
		v.softmaxLoss(op)
	case schedule.CTCLoss:
		ctcLoss(v, op)
	case schedule.Normalise:
		normalise(v, op)
	case schedule.NormaliseBackward:
		normaliseBack(v, op)
	case schedule.AllReduce: // of one replica: nothing to add
	case schedule.Squares:
		squares(v, op)
	case schedule.Change:
		change(v, op)
	case schedule.Update:
		v.update(op)
	default:
		panic(fmt.Sprintf("devicetest: no evaluation of %T", op))
	}
}

// each visits the elements of w.
func each(w schedule.View, f func(i, j int)) {
	for i := range w.Rows {
		for j := range w.Cols {
			f(i, j)
		}
	}
}

func sumRows(v values, op schedule.SumRows) {
	for j := range op.A.Cols {
		if !op.Accumulate {
			*v.at(op.Out, 0, j) = 0
		}
		for i := range op.A.Rows {
			*v.at(op.Out, 0, j) += *v.at(op.A, i, j)
		}
	}
}

func (v values) gemm(op schedule.Gemm) {
	_, _, k := op.Sizes()
	out := make([]float64, op.C.Rows*op.C.Cols)
	// A column of B is gathered once for all rows of A.
	row, column := make([][]float64, op.C.Rows), make([]float64, k)
	for i := range row {
		row[i] = make([]float64, k)
		for q := range k {
			if op.TransA {
				row[i][q] = *v.at(op.A, q, i)
			} else {
				row[i][q] = *v.at(op.A, i, q)
			}
		}
	}
	for j := range op.C.Cols {
		for q := range k {
			if op.TransB {
				column[q] = *v.at(op.B, j, q)
			} else {
				column[q] = *v.at(op.B, q, j)
			}
		}
		for i, a := range row {
			sum := 0.0
			for q, b := range column {
				sum += a[q] * b
			}
			out[i*op.C.Cols+j] = sum
		}
	}
	each(op.C, func(i, j int) {
		if !op.Accumulate {
			*v.at(op.C, i, j) = 0
		}
		*v.at(op.C, i, j) += out[i*op.C.Cols+j]
	})
}

func (v values) persistent(op schedule.Persistent) {
	h := op.Hidden()
	for t := range op.Steps {
		r := v.with(op.Before(t)[0], op.Cell.Recurrent)
		for g, w := range op.R {
			r.values.eval(schedule.Gemm{A: op.Before(t)[op.Cell.Through], B: w, C: r.view.Columns(g*h, h)})
		}
		r.values.eval(op.Step(t, r.view))
	}
}

func (v values) softmaxLoss(op schedule.SoftmaxLoss) {
	cols := op.Logits.Cols / max(1, op.Groups)
	for i := range op.Logits.Rows {
		class, weight := int(*v.at(op.Target, i, 0)), 1.0
		if !op.Weight.Empty() {
			weight = *v.at(op.Weight, i, 0)
		}
		if weight == 0 {
			class = -1
			*v.at(op.Loss, i, 0) = 0
		}
		for from := 0; from < op.Logits.Cols; from += cols {
			v.softmax(op, i, from, cols, class-from, weight)
		}
	}
}

// softmax computes one group of a row's classes, and the loss if class belongs to the group.
func (v values) softmax(op schedule.SoftmaxLoss, i, from, cols, class int, weight float64) {
	logits, prob := op.Logits.Columns(from, cols), op.Prob.Columns(from, cols)
	top, sum, mine := math.Inf(-1), 0.0, class >= 0 && class < cols
	for j := range cols {
		top = max(top, *v.at(logits, i, j))
	}
	for j := range cols {
		sum += math.Exp(*v.at(logits, i, j) - top)
	}
	if mine {
		*v.at(op.Loss, i, 0) = math.Log(sum) + top - *v.at(logits, i, class)
	}
	for j := range cols {
		p := math.Exp(*v.at(logits, i, j)-top) / sum
		switch {
		case op.Grad && !mine:
			p = 0
		case op.Grad:
			if j == class {
				p--
			}
			p *= float64(op.Scale) * weight
		}
		*v.at(prob, i, j) = p
	}
}

func normalise(v values, op schedule.Normalise) {
	n := float64(op.X.Cols)
	for i := range op.X.Rows {
		mean, variance := 0.0, 0.0
		for j := range op.X.Cols {
			mean += *v.at(op.X, i, j) / n
		}
		for j := range op.X.Cols {
			variance += math.Pow(*v.at(op.X, i, j)-mean, 2) / n
		}
		by := 1 / math.Sqrt(variance+schedule.NormEpsilon)
		for j := range op.X.Cols {
			*v.at(op.Out, i, j) = *v.at(op.Gain, 0, j) * (*v.at(op.X, i, j) - mean) * by
		}
		if !op.Stats.Empty() {
			*v.at(op.Stats, i, 0), *v.at(op.Stats, i, 1) = mean, by
		}
	}
}

func normaliseBack(v values, op schedule.NormaliseBackward) {
	n := float64(op.X.Cols)
	for i := range op.X.Rows {
		mean, by := *v.at(op.Stats, i, 0), *v.at(op.Stats, i, 1)
		normal, d, sum, along := make([]float64, op.X.Cols), make([]float64, op.X.Cols), 0.0, 0.0
		for j := range normal {
			normal[j], d[j] = (*v.at(op.X, i, j)-mean)*by, *v.at(op.DOut, i, j)
			sum += d[j] * *v.at(op.Gain, 0, j) / n
			along += d[j] * *v.at(op.Gain, 0, j) * normal[j] / n
		}
		for j := range normal {
			*v.at(op.DX, i, j) = by * (d[j]**v.at(op.Gain, 0, j) - sum - normal[j]*along)
			*v.at(op.Share, i, j) = d[j] * normal[j]
		}
	}
}

func squares(v values, op schedule.Squares) {
	for i := range op.Out.Cols {
		sum := 0.0
		each(op.Band(i), func(r, c int) { sum += math.Pow(*v.at(op.Band(i), r, c), 2) })
		*v.at(op.Out, 0, i) = sum
	}
}

// update updates a parameter by its gradient.
func (v values) update(op schedule.Update) {
	rates, sum := make([]float64, schedule.RateColumns), 0.0
	for i := range rates {
		rates[i] = *v.at(op.Rates, 0, i)
	}
	if !op.Squares.Empty() {
		each(op.Squares, func(i, j int) { sum += *v.at(op.Squares, i, j) })
	}
	scale := op.Scale(rates, sum)
	each(op.Param, func(i, j int) {
		if scale != 0 {
			moment := make([]float64, len(op.Moment))
			for k, m := range op.Moment {
				moment[k] = *v.at(m, i, j)
			}
			*v.at(op.Param, i, j) = op.Step(rates, *v.at(op.Param, i, j), scale**v.at(op.Grad, i, j), moment)
			for k, m := range op.Moment {
				*v.at(m, i, j) = moment[k]
			}
		}
		if !op.Copy.Empty() {
			*v.at(op.Copy, i, j) = *v.at(op.Param, i, j)
		}
	})
}

// A temporary is values with one more matrix at the end, and a view of that matrix.
type temporary struct {
	values values
	view   schedule.View
}

func (v values) with(state schedule.View, temps int) temporary {
	m := &schedule.Matrix{Name: "temporaries", Rows: state.Rows, Cols: max(1, temps) * state.Cols, ID: len(v)}
	return temporary{append(v[:len(v):len(v)], make([]float64, m.Elements())), m.All()}
}
