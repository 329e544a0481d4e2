package train

import (
	"errors"
	"fmt"

	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
	"rnnbench/train/data"
	"rnnbench/train/data/speech"
)

// An Evaluator measures a network under training on data that it is not trained on.
type Evaluator struct {
	problem rnn.Problem
	solving int // iterations of an iterative technique
	plan    *rnn.Plan
	program device.Program
	source  data.Source
	batch   *minibatch
	batches int
	start   []byte // position of source, from which every evaluation begins

	residual float64 // the largest of all minibatches of an evaluation

	decoded, right [][]int // transcripts of an evaluation
}

// Score is a network's result on data. Loss is the mean loss of all steps that count. Top1, Top5
// and Top20 are the shares of these steps whose class is the most likely one, or among the 5 or 20
// most likely. Where classes are in groups, only the class's group is ranked.
//
// With transcripts, Loss is the mean of all sequences, and classes of steps are not ranked. LabelErrors
// is the label error rate: how many labels to insert, delete or replace in what is decoded greedily, for
// each label of the right transcripts.
type Score struct {
	Loss              float64
	Top1, Top5, Top20 float64
	LabelErrors       float64
}

// NewEvaluator prepares forward passes of t's network over so many minibatches of source, whose
// sequences and steps are batch and steps.
func (t *Trainer) NewEvaluator(source data.Source, batch, steps, batches int) (*Evaluator, error) {
	if got, want := source.Shape(), t.Source.Shape(); got != want {
		return nil, errors.New("train: the data to evaluate on has another shape than the data to train on")
	}
	p := t.Problem
	p.Pass, p.Batch, p.Steps, p.History = rnn.Forward, batch, steps, 0
	e := &Evaluator{problem: p, source: source, batches: batches, start: source.State()}
	if err := e.compile(t, t.solver.heldOut()); err != nil {
		return nil, err
	}
	e.batch = newMinibatch(source, e.plan.Given.Elements(), e.plan.Head.Target.Elements())
	return e, nil
}

// compile compiles the forward pass with n iterations of an iterative technique.
func (e *Evaluator) compile(t *Trainer, n int) error {
	if e.program != nil {
		if e.solving == n {
			return nil
		}
		err := e.program.Close()
		if e.program = nil; err != nil {
			return err
		}
	}
	plan, s, err := rnn.LayoutForward(t.Technique, e.problem, t.solver.with(nil, n), t.Optimizer.Carry)
	if err != nil {
		return err
	}
	e.plan, e.solving = plan, n
	e.program, err = t.Device.Compile(s, nil)
	return err
}

func (e *Evaluator) Close() error {
	if e.program == nil { // it could not be compiled again
		return nil
	}
	return e.program.Close()
}

// Evaluate scores t's present parameters. It always uses the same minibatches, so that a training
// in parts gets the scores of one in a piece. An iterative technique takes one more iteration than for training,
// whose pass ends with a plain step, and more of them if these are not enough. The error is ErrNotConverged if
// no number is.
func (e *Evaluator) Evaluate(t *Trainer) (Score, error) {
	most := t.solver.most
	for n := t.solver.heldOut(); ; n = min(2*n, most) {
		if err := e.compile(t, n); err != nil {
			return Score{}, err
		}
		score, err := e.once(t)
		switch {
		case err != nil || e.residual <= closeEnough(e.problem):
			return score, err
		case n >= most:
			return Score{}, fmt.Errorf("held-out data: %w", unsolved(n, e.residual))
		}
	}
}

// once scores t's present parameters.
func (e *Evaluator) once(t *Trainer) (Score, error) {
	into := e.plan.Inputs()
	for _, one := range t.plan.Updates.Trained {
		values := make([]float32, one.Param.Elements())
		if err := errors.Join(t.program.Read(one.Param, values), e.program.Write(into[one.Name], values)); err != nil {
			return Score{}, err
		}
	}
	if err := errors.Join(e.clear(), rnn.WriteConstants(e.plan, e.program), e.source.Restore(e.start), e.program.Prepare()); err != nil {
		return Score{}, err
	}
	var s Score
	counted := 0
	e.decoded, e.right = nil, nil
	for range e.batches {
		if err := e.add(&s); err != nil {
			return Score{}, err
		}
		counted += e.batch.counted
	}
	var err error
	if e.residual, err = rnn.LargestChange(e.plan, e.program); err != nil {
		return Score{}, err
	}
	for _, v := range []*float64{&s.Loss, &s.Top1, &s.Top5, &s.Top20} {
		*v /= float64(max(1, counted))
	}
	s.LabelErrors = speech.ErrorRate(e.decoded, e.right)
	return s, nil
}

// clear sets the states before the first step to 0.
func (e *Evaluator) clear() error {
	for _, m := range e.plan.FirstStates() {
		if err := e.program.Write(m, make([]float32, rnn.FirstRows(e.plan, m)*m.Cols)); err != nil {
			return err
		}
	}
	return nil
}

// add adds a minibatch's losses to s, and counts the steps that are right.
func (e *Evaluator) add(s *Score) error {
	h := e.plan.Head
	if e.batch.next(e.source); e.batch.err != nil {
		return e.batch.err
	}
	if err := e.batch.write(e.plan, e.program, e.plan.Given); err != nil {
		return err
	}
	if _, err := e.program.Run(1); err != nil {
		return err
	}
	loss, prob := make([]float32, h.Loss.Elements()), make([]float32, h.Prob.Elements())
	if err := errors.Join(e.program.Read(h.Loss, loss), e.program.Read(h.Prob, prob)); err != nil {
		return err
	}
	s.Loss += sum(loss)
	if e.plan.Transcript > 0 {
		e.decode(prob)
	} else {
		s.rank(h.Prob, max(1, e.plan.Groups), prob, e.batch.target)
	}
	return nil
}

// decode notes the transcripts of a minibatch, decoded and right.
func (e *Evaluator) decode(prob []float32) {
	p, cols := e.problem, 1+e.problem.Transcript
	for b := range p.Batch {
		steps, labels := rnn.Transcript(e.batch.target[b*cols:][:cols])
		e.decoded, e.right = append(e.decoded, speech.Greedy(prob, p.Output, p.Batch, b, steps)), append(e.right, labels)
	}
}

// rank counts the rows whose class is among the most likely ones of its group. Equally likely
// classes count as more likely, so a network that tells nothing apart is not right. A class below 0
// does not count.
func (s *Score) rank(of *schedule.Matrix, groups int, prob, target []float32) {
	size := of.Cols / groups
	for i := range of.Rows {
		class, above := int(target[i]), 0
		if class < 0 {
			continue
		}
		from := class / size * size
		row := prob[i*of.Cols+from:][:size]
		class -= from
		if row[class] != row[class] {
			continue // NaN is no answer
		}
		for j, p := range row {
			if j != class && p >= row[class] {
				above++
			}
		}
		for k, v := range map[int]*float64{1: &s.Top1, 5: &s.Top5, 20: &s.Top20} {
			if above < k {
				*v++
			}
		}
	}
}
