// Package ragged parses and draws random lengths for the sequences of a batch.
package ragged

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Uniform is the prefix of the word for random lengths.
const Uniform = "uniform:"

// ParseUniform parses a word such as "uniform:50%@7". It returns the mean as a percentage of the
// steps, 50 to 99, and the seed; 1 if there is none.
func ParseUniform(text string) (mean int, seed uint64, err error) {
	percent, number, seeded := strings.Cut(strings.TrimPrefix(text, Uniform), "@")
	digits, ok := strings.CutSuffix(percent, "%")
	mean, err = strconv.Atoi(digits)
	if seed = 1; seeded && err == nil {
		seed, err = strconv.ParseUint(number, 10, 64)
	}
	if !ok || err != nil {
		return 0, 0, fmt.Errorf("lengths are %q: write the mean as uniform:50%%, or with a seed as uniform:50%%@7", text)
	}
	if mean < 50 || mean > 99 {
		return 0, 0, fmt.Errorf("lengths are %q: the mean of lengths up to all steps must be 50%% to 99%%; name a file for others", text)
	}
	return mean, seed, nil
}

// Draw returns batch random lengths, sorted. They are uniform between the number of steps and a
// lower bound, so that their mean is the percentage mean of steps. The shortest of several has
// the lower bound, and the longest has all steps.
func Draw(mean int, seed uint64, batch, steps int) []int {
	low := max(1, int(math.Round(float64(steps)*float64(2*mean-100)/100)))
	rng := rand.New(rand.NewPCG(seed, 0x6c656e67746873))
	list := make([]int, batch)
	for i := range list {
		list[i] = low + rng.IntN(steps-low+1)
	}
	list[0] = low
	list[batch-1] = steps
	slices.Sort(list)
	return list
}
