// Package speech has utterances with their transcripts: generated ones, or recordings in a folder. A
// Task makes minibatches of spectrograms and labels of them, for a loss over sequences such as CTC
// (Graves et al. 2006). Decoded transcripts are compared with the right ones by their edit distance.
package speech

import (
	"errors"
	"fmt"
	"strings"
)

// An Utterance is what somebody said.
type Utterance struct {
	Samples []float32 // from -1 to 1
	Rate    int       // samples a second
	Text    string    // its transcript
}

// A Corpus is a set of utterances. Several goroutines may use it.
type Corpus interface {
	// Len is the number of utterances.
	Len() int

	// Alphabet has the letters of all transcripts.
	Alphabet() Alphabet

	// Longest is the number of labels that the longest transcript has, or may have. It is the same for
	// the held-out part.
	Longest() int

	// Fits reports whether the spectrogram of every utterance fits so many steps and has a frame for
	// each of its letters.
	Fits(s Spectrogram, steps int) error

	// Utterance is the i-th one, always the same.
	Utterance(i int) (Utterance, error)
}

// An Alphabet is the letters of transcripts. The class of a letter is its place, from 1 on: class 0
// is CTC's blank.
type Alphabet string

// English has the letters of Deep Speech (Hannun et al., arXiv:1412.5567): a to z, space and apostrophe.
const English Alphabet = "abcdefghijklmnopqrstuvwxyz '"

// Classes is the number of classes, the blank included.
func (a Alphabet) Classes() int { return 1 + len([]rune(a)) }

// Check reports a letter that is there twice, or none at all.
func (a Alphabet) Check() error {
	seen := map[rune]bool{}
	for _, letter := range string(a) {
		if seen[letter] {
			return fmt.Errorf("alphabet has %q twice", letter)
		}
		seen[letter] = true
	}
	if len(seen) == 0 {
		return errors.New("alphabet has no letters")
	}
	return nil
}

// Labels returns the classes of text's letters.
func (a Alphabet) Labels(text string) ([]int, error) {
	class := map[rune]int{}
	for i, letter := range []rune(a) {
		class[letter] = i + 1
	}
	var labels []int
	for _, letter := range text {
		c, ok := class[letter]
		if !ok {
			return nil, fmt.Errorf("%q is not in the alphabet %q", letter, string(a))
		}
		labels = append(labels, c)
	}
	return labels, nil
}

// Text returns the letters of labels.
func (a Alphabet) Text(labels []int) string {
	letters := []rune(a)
	var text strings.Builder
	for _, c := range labels {
		text.WriteRune(letters[c-1])
	}
	return text.String()
}
