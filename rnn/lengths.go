package rnn

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"rnnbench/internal/ragged"
)

// Lengths says how many of the steps each sequence of a batch has:
//
//	""               all steps
//	"uniform:50%"    drawn: half of the steps in the mean; see ragged.Draw
//	"uniform:50%@7"  drawn by seed 7; without, by seed 1
//	"2*3+5+9"        two sequences of 3 steps, one of 5 and one of 9
//
// Semantics are those of PyTorch's packed sequences. Steps past the end of a sequence do not exist:
// an answer has 0 there. A layer that reads from the last step begins at each sequence's own last
// step. Sequences are numbered from the shortest to the longest: see Batches. The longest has all
// steps.
type Lengths string

// ParseLengths reads the value of --lengths. Lists are sorted.
func ParseLengths(text string) (Lengths, error) {
	if text == "" || text == "full" {
		return "", nil
	}
	if strings.HasPrefix(text, ragged.Uniform) {
		mean, seed, err := ragged.ParseUniform(text)
		if err != nil {
			return "", err
		}
		l := fmt.Sprintf("%s%d%%", ragged.Uniform, mean)
		if seed != 1 {
			l += fmt.Sprintf("@%d", seed)
		}
		return Lengths(l), nil
	}
	list, err := parseList(text)
	if err != nil {
		return "", err
	}
	return LengthsOf(list), nil
}

// parseList reads "2*3+5+9".
func parseList(text string) ([]int, error) {
	var list []int
	for part := range strings.SplitSeq(text, "+") {
		times, length, many := strings.Cut(part, "*")
		n := 1
		var err error
		if !many {
			length = times
		} else if n, err = strconv.Atoi(times); err != nil || n < 1 || n > 1<<30-len(list) {
			return nil, fmt.Errorf("lengths are %q: %q must be a number of sequences, at least 1", text, times)
		}
		steps, err := strconv.Atoi(length)
		if err != nil {
			return nil, fmt.Errorf("lengths are %q: write full, uniform:50%%, a file's name, or a list such as 2*3+5+9", text)
		}
		if steps < 1 {
			return nil, fmt.Errorf("a length is %d: each sequence must have at least 1 step", steps)
		}
		if n > mostLengths-len(list) {
			return nil, fmt.Errorf("lengths are of more than %d sequences", mostLengths)
		}
		for range n {
			list = append(list, steps)
		}
	}
	return list, nil
}

// mostLengths bounds lists of lengths.
const mostLengths = 1 << 20

// ReadLengths reads a file of one length per line. Empty lines are skipped.
func ReadLengths(name string, r io.Reader) (Lengths, error) {
	var list []int
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1<<30 {
			return "", fmt.Errorf("%s, line %d: %.40q is not a length: write one number of steps a line, at least 1", name, number, text)
		}
		if list = append(list, n); len(list) > mostLengths {
			return "", fmt.Errorf("%s has more than %d lengths", name, mostLengths)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return "", fmt.Errorf("%s has a line that is too long: write one length per line", name)
	} else if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if len(list) == 0 {
		return "", fmt.Errorf("%s has no lengths: write one length per line", name)
	}
	return LengthsOf(list), nil
}

// LengthsOf returns the lengths in list, which may be in any order.
func LengthsOf(list []int) Lengths {
	list = slices.Sorted(slices.Values(list))
	var parts []string
	for from := 0; from < len(list); {
		to := from
		for to < len(list) && list[to] == list[from] {
			to++
		}
		part := strconv.Itoa(list[from])
		if to-from > 1 {
			part = fmt.Sprintf("%d*%s", to-from, part)
		}
		parts, from = append(parts, part), to
	}
	return Lengths(strings.Join(parts, "+"))
}

func (l Lengths) String() string {
	if l == "" {
		return "full"
	}
	return string(l)
}

// Each returns the lengths of a batch of so many sequences, shortest first; the longest has all
// steps. It returns nil where all sequences have all steps.
func (l Lengths) Each(batch, steps int) ([]int, error) {
	if l == "" {
		return nil, nil
	}
	if strings.HasPrefix(string(l), ragged.Uniform) {
		mean, seed, err := ragged.ParseUniform(string(l))
		if err != nil {
			return nil, err
		}
		return ragged.Draw(mean, seed, batch, steps), nil
	}
	list, err := parseList(string(l))
	if err != nil {
		return nil, err
	}
	slices.Sort(list)
	switch top := list[len(list)-1]; {
	case len(list) != batch:
		return nil, fmt.Errorf("there are %d lengths, but the batch has %d sequences: each needs a length", len(list), batch)
	case top > steps:
		return nil, fmt.Errorf("the longest sequence has %d steps, more than the %d steps of the problem: set steps to %d", top, steps, top)
	case top < steps:
		return nil, fmt.Errorf("the longest sequence has %d steps, but the problem has %d: set steps to %d", top, steps, top)
	}
	return list, nil
}

// checkLengths reports lengths that do not fit the problem, and settings that do not go with lengths yet.
func checkLengths(p Problem) error {
	if p.Lengths == "" {
		return nil
	}
	if _, err := p.Lengths.Each(p.Batch, p.Steps); err != nil {
		return fmt.Errorf("rnn: %w", err)
	}
	switch {
	case p.History > 0:
		return fmt.Errorf("rnn: lengths are %.60v, but history keeps the last steps of whole sequences: set history to 0, or lengths to full", p.Lengths)
	case p.Calls > 0:
		return fmt.Errorf("rnn: lengths are %.60v, but each call takes as many steps of all sequences: set calls to 0, or lengths to full", p.Lengths)
	case float64(p.Steps)*float64(p.Batch) > MaxSymbols:
		return fmt.Errorf("rnn: lengths are %.60v: they take at most %d rows of steps and sequences, not %.0f", p.Lengths, MaxSymbols, float64(p.Steps)*float64(p.Batch))
	}
	return nil
}

// SequenceLengths returns the lengths of p's sequences; nil: all have all steps. p has been checked.
func SequenceLengths(p Problem) []int {
	list, err := p.Lengths.Each(p.Batch, p.Steps)
	if err != nil {
		panic(err)
	}
	return list
}

// StepsBeyond counts the steps, over all sequences of p, that have at least so many steps of the
// same sequence before them. With before 0 it counts all steps.
func StepsBeyond(p Problem, before int) int64 {
	list := SequenceLengths(p)
	if list == nil {
		return int64(max(0, p.Steps-before)) * int64(p.Batch)
	}
	sum := int64(0)
	for _, n := range list {
		sum += int64(max(0, n-before))
	}
	return sum
}

// Resized is p with another number of steps. Lengths in a list become longer or shorter in proportion.
func Resized(p Problem, steps int) Problem {
	if !strings.HasPrefix(string(p.Lengths), ragged.Uniform) {
		if list := SequenceLengths(p); list != nil {
			for i, n := range list {
				list[i] = max(1, int(int64(n)*int64(steps)/int64(p.Steps)))
			}
			p.Lengths = LengthsOf(list)
		}
	}
	p.Steps = steps
	return p
}
