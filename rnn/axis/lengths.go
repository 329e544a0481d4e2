package axis

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"rnnbench/internal/ragged"
)

// SequenceLengths says how many steps each sequence of a batch has, as rnn.Lengths does: "uniform:50%",
// or a list such as "2*3+5+9". In memory "" stands for "full": all steps, as in all records from
// before this axis. Files say "full".
type SequenceLengths string

func (l SequenceLengths) String() string {
	if l == "" {
		return "full"
	}
	return string(l)
}

// Short is String, but cuts long lists.
func (l SequenceLengths) Short() string {
	const most = 40
	if s := l.String(); len(s) <= most {
		return s
	}
	cut := strings.LastIndex(string(l[:most]), "+") + 1
	return fmt.Sprintf("%s… (%d more)", l[:cut], strings.Count(string(l[cut:]), "+")+1)
}

// Mean is the mean length in percent of steps. For drawn lengths it is the mean of the distribution.
func (l SequenceLengths) Mean(steps int) (percent float64, ok bool) {
	if l == "" {
		return 100, true
	}
	if text, drawn := strings.CutPrefix(string(l), ragged.Uniform); drawn {
		text, _, _ = strings.Cut(text, "%")
		percent, err := strconv.ParseFloat(text, 64)
		return percent, err == nil
	}
	sum, count, ok := l.listed()
	return 100 * sum / count / float64(steps), ok && steps > 0
}

// Steps is how many steps the sequences of a batch have together. For drawn lengths it draws them.
func (l SequenceLengths) Steps(batch, steps int) (sum float64, ok bool) {
	switch {
	case batch < 1 || steps < 1:
		return 0, false
	case l == "":
		return float64(batch) * float64(steps), true
	case !strings.HasPrefix(string(l), ragged.Uniform):
		sum, count, ok := l.listed()
		return sum, ok && count == float64(batch)
	}
	mean, seed, err := ragged.ParseUniform(string(l))
	if err != nil || batch > mostDrawn {
		return 0, false
	}
	for _, n := range ragged.Draw(mean, seed, batch, steps) {
		sum += float64(n)
	}
	return sum, true
}

// mostDrawn is the largest batch for which Steps draws lengths.
const mostDrawn = 1 << 24

// listed is the sum of a list such as "2*3+5+9", and the number of its lengths.
func (l SequenceLengths) listed() (sum, count float64, ok bool) {
	for part := range strings.SplitSeq(string(l), "+") {
		times, length, many := strings.Cut(part, "*")
		if !many {
			times, length = "1", part
		}
		n, err := strconv.ParseFloat(times, 64)
		of, wrong := strconv.ParseFloat(length, 64)
		if err != nil || wrong != nil || n <= 0 {
			return 0, 0, false
		}
		sum, count = sum+n*of, count+n
	}
	return sum, count, true
}

// MarshalText implements encoding.TextMarshaler.
func (l SequenceLengths) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It checks only characters; rnn reads the lengths.
func (l *SequenceLengths) UnmarshalText(text []byte) error {
	if strings.ContainsFunc(string(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(":%@*+", r)
	}) {
		return fmt.Errorf("%.40q are not lengths: write full, uniform:50%% or a list such as 2*3+5+9", text)
	}
	if len(text) == 0 {
		return errors.New("lengths are empty: write full")
	}
	if *l = SequenceLengths(text); *l == "full" {
		*l = ""
	}
	return nil
}
