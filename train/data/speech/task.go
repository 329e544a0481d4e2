package speech

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"rnnbench/internal/parallel"
)

// Options say how utterances become minibatches.
type Options struct {
	Spectrogram
	Batch, Steps int    // utterances of a minibatch, and frames that there is room for
	Seed         uint64 // of the order
}

// A Task yields minibatches of a corpus without end. Each epoch goes through all utterances in an order of
// its own. It is for one goroutine.
type Task struct {
	Options
	corpus Corpus
	at     uint64 // utterances so far
	epoch  uint64 // of order
	order  []int
}

// A Minibatch is some utterances, each as frames and labels.
type Minibatch struct {
	Frames  []float32 // steps·batch × bands; row t·batch+b is frame t of utterance b, 0 after its end
	Lengths []int     // frames of each utterance
	Labels  [][]int   // classes of each transcript's letters; 0, the blank, is none of them
}

// NewTask returns the task of a corpus. Its utterances must fit the steps.
func NewTask(c Corpus, o Options) (*Task, error) {
	if err := c.Fits(o.Spectrogram, o.Steps); err != nil {
		return nil, err
	}
	return &Task{Options: o, corpus: c}, nil
}

// Classes is the number of classes, the blank included.
func (t *Task) Classes() int { return t.corpus.Alphabet().Classes() }

// Alphabet spells labels.
func (t *Task) Alphabet() Alphabet { return t.corpus.Alphabet() }

// Longest is the number of labels that the longest transcript has.
func (t *Task) Longest() int { return t.corpus.Longest() }

// Epoch is the number of utterances of an epoch.
func (t *Task) Epoch() int { return t.corpus.Len() }

// Next fills m, whose Frames have room for steps·batch × bands values.
func (t *Task) Next(m *Minibatch) error {
	clear(m.Frames)
	m.Lengths, m.Labels = make([]int, t.Batch), make([][]int, t.Batch)
	which, errs := make([]int, t.Batch), make([]error, t.Batch)
	for b := range which {
		which[b] = t.draw()
	}
	parallel.For(t.Batch, func(b int) { errs[b] = t.fill(m, b, which[b]) })
	return errors.Join(errs...)
}

// draw returns the number of the next utterance.
func (t *Task) draw() int {
	n := uint64(t.corpus.Len())
	if epoch := t.at / n; t.order == nil || epoch != t.epoch {
		t.epoch, t.order = epoch, rand.New(rand.NewPCG(t.Seed, epoch)).Perm(int(n))
	}
	i := t.order[t.at%n]
	t.at++
	return i
}

// fill sets row b of each step, the length and the labels to utterance i.
func (t *Task) fill(m *Minibatch, b, i int) error {
	u, err := t.corpus.Utterance(i)
	if err != nil {
		return err
	}
	if m.Labels[b], err = t.corpus.Alphabet().Labels(u.Text); err != nil {
		return err
	}
	m.Lengths[b] = t.Frames(len(u.Samples), u.Rate)
	if err := t.fits(fmt.Sprintf("utterance %d", i+1), m.Lengths[b], m.Labels[b], t.Steps); err != nil {
		return err // its file has changed
	}
	for step, frames := 0, t.Of(u.Samples, u.Rate); step < m.Lengths[b]; step++ {
		copy(m.Frames[(step*t.Batch+b)*t.Bands:], frames[step*t.Bands:][:t.Bands])
	}
	return nil
}

// State is the position after the last Next, for a checkpoint.
func (t *Task) State() []byte { return binary.LittleEndian.AppendUint64(nil, t.at) }

// Restore returns to a position, exactly.
func (t *Task) Restore(state []byte) error {
	if len(state) != 8 {
		return errors.New("the position is not one of this task")
	}
	t.at = binary.LittleEndian.Uint64(state)
	return nil
}
