package speech

// Collapse returns the labels of a path of classes, one a frame: repeats count once, and blanks are
// dropped (Graves et al. 2006, the map B).
func Collapse(path []int) []int {
	var labels []int
	for i, c := range path {
		if c != 0 && (i == 0 || c != path[i-1]) {
			labels = append(labels, c)
		}
	}
	return labels
}

// Greedy decodes utterance b of a minibatch: the likeliest class of each of its frames, collapsed. Row
// t·batch+b of scores has a score, such as a probability, for each class at frame t. Of equal scores
// the first class counts.
func Greedy(scores []float32, classes, batch, b, frames int) []int {
	path := make([]int, frames)
	for t := range path {
		row := scores[(t*batch+b)*classes:][:classes]
		for c, v := range row {
			if v > row[path[t]] {
				path[t] = c
			}
		}
	}
	return Collapse(path)
}

// EditDistance is the least number of labels to insert, delete or replace that makes b of a
// (Levenshtein 1966).
func EditDistance(a, b []int) int {
	row := make([]int, len(b)+1) // distances of a's first labels from each beginning of b
	for j := range row {
		row[j] = j
	}
	for i, label := range a {
		corner := row[0] // of the row above
		row[0] = i + 1
		for j, other := range b {
			replaced := corner
			if label != other {
				replaced++
			}
			corner = row[j+1]
			row[j+1] = min(replaced, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
}

// ErrorRate is the sum of the edit distances of decoded from right transcripts, for each label of the
// right ones. It may exceed 1.
func ErrorRate(decoded, right [][]int) float64 {
	edits, labels := 0, 0
	for i, r := range right {
		edits += EditDistance(decoded[i], r)
		labels += len(r)
	}
	return float64(edits) / float64(max(1, labels))
}
