package record

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Find returns the path of the run that a word names: a path, or the id or label of a run in
// dir. It returns word if there is no such run.
func Find(word, dir string) string {
	if exists(word) || word == "" {
		return word
	}
	if at := filepath.Join(dir, word); !strings.ContainsRune(word, filepath.Separator) && exists(at) {
		return at
	}
	if at := labelled(word, dir); at != "" {
		return at
	}
	return word
}

// CutLabel splits label=RUN. A word that names a run as it stands has no such label, though the run's own
// label may contain "=".
func CutLabel(word, dir string) (label, run string, ok bool) {
	label, run, ok = strings.Cut(word, "=")
	if !ok || exists(Find(word, dir)) {
		return "", word, false
	}
	return label, run, true
}

// labelled returns the folder of the latest run in dir with that label; "": there is none.
func labelled(label, dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	latest, began := "", time.Time{}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if m, err := ReadManifest(at); err == nil && m.Label == label && !m.Started.Before(began) {
			latest, began = at, m.Started
		}
	}
	return latest
}

// FindSides splits lists of runs, A1,A2 or label=A1,A2. Runs with equal numbers in side form one
// side: the runs of one list, or of one label.
func FindSides(args []string, dir string) (runs []string, side []int) {
	labelled := map[string]int{}
	for i, a := range args {
		label, list, ok := CutLabel(a, dir)
		parts := []string{list}
		if !exists(Find(list, dir)) {
			parts = strings.Split(list, ",")
		}
		at := i
		if first, seen := labelled[label]; ok && seen {
			at = first
		} else if ok {
			labelled[label] = i
		}
		for _, part := range parts {
			if ok {
				part = label + "=" + part
			}
			runs, side = append(runs, part), append(side, at)
		}
	}
	return runs, side
}
