package rnn

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/ctc"
	"rnnbench/rnn/schedule"
)

// With transcripts the loss is one of whole sequences, by connectionist temporal classification (Graves
// et al. 2006): see schedule.CTCLoss. Class 0 is the blank. The loss of a run is the mean over its
// sequences.
//
// A row of the target belongs to a sequence. It has the number of steps that the sequence has, then its
// labels, then zeros: 1 + Transcript values. Layers run all steps of all sequences, but the loss ends
// where the sequence does. Behind its end, the blank's logit is raised by padding, so that the blank has
// probability 1. Then steps behind the end neither change the loss nor have a gradient.
//
// Every technique is composed where there are transcripts: the layers are its own, the output layer is
// that of compose.

// padding is so large that exp(-padding) is 0, and so small that 16 bits hold it.
const padding = 1 << 14

// checkTranscript reports an invalid length, and settings that do not go with transcripts.
func checkTranscript(p Problem) error {
	without := func(name string) error {
		return fmt.Errorf("rnn: the loss of a transcript is that of a whole sequence, with one softmax: set %s to none, or transcript to none", name)
	}
	switch {
	case p.Transcript < 0 || p.Transcript > MaxSymbols:
		return fmt.Errorf("rnn: transcript is %d labels: it must be 0 (none) to %d", p.Transcript, MaxSymbols)
	case p.Transcript == 0:
	case p.Output < 2:
		return fmt.Errorf("rnn: transcript is %d labels, but output is %d: a transcript takes the blank and at least one label, so set output to 2 or more", p.Transcript, p.Output)
	case p.Groups > 1:
		return without("groups")
	case p.Weighted:
		return fmt.Errorf("rnn: the loss of a transcript has no weights of steps: set weighted to false, or transcript to none")
	case p.Lengths != "":
		return fmt.Errorf("rnn: lengths are %.60v, but sequences with transcripts each end within all steps: set lengths to full, or transcript to none", p.Lengths)
	case p.History > 0:
		return without("history")
	case p.Calls > 0:
		return without("calls")
	}
	return nil
}

// transcripts adds the loss of each sequence. It turns logits into probabilities or, where training,
// gradients.
func (p *Plan) transcripts(stream int) {
	h, train := p.Head, p.Pass == Train
	blank := h.Prob.All().Columns(0, 1)
	p.Do(stream, schedule.Map{Op: cell.Add, Out: blank, A: blank, B: h.Padding.All()})
	p.Do(stream, schedule.CTCLoss{
		Logits: h.Prob.All(), Labels: h.Target.All().Columns(1, p.Transcript), Loss: h.Loss.All(), Prob: h.Prob.All(),
		Scratch: p.Scratch("alignments", h.Prob.Rows, schedule.CTCScratch(p.Transcript, train)).All(), Grad: train, Scale: float32(1 / float64(p.Batch)),
	})
}

// FillPadding sets values, which are those of Head.Padding, for the targets of its sequences: 0 at steps
// that a sequence has, and else padding. cols is the number of values of a target.
func FillPadding(values, target []float32, cols int) {
	n := len(target) / cols
	for row := range values {
		if values[row] = 0; float32(row/n) >= target[row%n*cols] {
			values[row] = padding
		}
	}
}

// Transcript returns the number of steps of a sequence, and its labels. target is its row.
func Transcript(target []float32) (steps int, labels []int) {
	for _, k := range target[1:] {
		if k == 0 {
			break
		}
		labels = append(labels, int(k))
	}
	return int(target[0]), labels
}

// drawTranscripts draws targets. Sequences have half of the steps or more, and at most as many labels as
// their steps can spell.
func drawTranscripts(p Problem, seed uint64, sequences int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 0x7472616e736372))
	cols := 1 + p.Transcript
	out := make([]float32, sequences*cols)
	for row := range slices.Chunk(out, cols) {
		row[0] = float32(p.Steps - rng.IntN(1+p.Steps/2))
		for i := range rng.IntN(1 + p.Transcript) {
			row[1+i] = float32(1 + rng.IntN(p.Output-1))
		}
	}
	return FitTranscripts(out, cols, p.Steps)
}

// FitTranscripts returns targets for at most so many steps: with fewer labels where these cannot spell
// all.
func FitTranscripts(target []float32, cols, steps int) []float32 {
	target = slices.Clone(target)
	for row := range slices.Chunk(target, cols) {
		has, labels := Transcript(row)
		has = min(has, steps)
		for ctc.Needs(labels) > has {
			labels = labels[:len(labels)-1]
		}
		row[0] = float32(has)
		clear(row[1+len(labels):])
	}
	return target
}
