// Package nearest finds the word that was most likely meant by a misspelt one.
package nearest

import (
	"fmt"
	"slices"
	"strings"
)

// Word returns the word that was most likely meant by a misspelt one, or by a word that other
// programs use, or "".
func Word(word string, words []string) string {
	if w := meaning(word, words); w != "" {
		return w
	}
	best, least := "", 2+min(len(word), 30)/4
	for _, w := range words {
		d := distance(strings.ToLower(word), strings.ToLower(w))
		if len(word) >= 2 && strings.HasPrefix(strings.ToLower(w), strings.ToLower(word)) {
			d = min(d, 1)
		}
		if d < least && d < len(w) {
			best, least = w, d
		}
	}
	return best
}

// distance is the number of edits from a to b in bytes: a letter more, less, another, or two swapped.
func distance(a, b string) int {
	if len(a)+len(b) > 200 {
		return len(a) + len(b) // too long to be a misspelling
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	before := slices.Clone(row) // the row before the last
	for i := range len(a) {
		last := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			cost := last[j]
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before = last
	}
	return row[len(b)]
}

// Unknown returns the error for a word that is not among words. It suggests the nearest word, or
// those that contain it.
func Unknown(kind, word string, words []string) error {
	if near := Word(word, words); near != "" {
		return fmt.Errorf("unknown %s %q: did you mean %s?", kind, word, near)
	}
	if len(words) == 0 {
		return fmt.Errorf("unknown %s %q: none exists", kind, word)
	}
	if longer := containing(word, words); longer != nil {
		words = longer
	}
	return fmt.Errorf("unknown %s %q: choose among %s", kind, word, strings.Join(words, ", "))
}

// containing lists the words that contain word; nil: none, or word has fewer than three letters.
func containing(word string, words []string) []string {
	if len(word) < 3 {
		return nil
	}
	var list []string
	for _, w := range words {
		if strings.Contains(strings.ToLower(w), strings.ToLower(word)) {
			list = append(list, w)
		}
	}
	return list
}
