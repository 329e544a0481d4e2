package graph_test

import (
	"fmt"
	"testing"

	"rnnbench/internal/tomlfile/hostile"
	"rnnbench/rnn/graph"
)

// TestHostileFiles: any graph of up to four megabytes is read or refused soon.
func TestHostileFiles(t *testing.T) {
	const head = "name = 'g'\n"
	layer := func(i int) string { return fmt.Sprintf("[[layer]]\nname='%d'\nsize=1\n", i) }
	hostile.Try(t, head, func() map[string]string {
		return map[string]string{
			"layers": hostile.Repeat(head, layer),
			"a chain": hostile.Repeat(head+layer(0), func(i int) string {
				return layer(i+1) + fmt.Sprintf("[[connection]]\nfrom='%d'\nto='%d'\n", i, i+1)
			}),
			"a loop": hostile.Repeat(head+layer(0), func(i int) string {
				return layer(i+1) + fmt.Sprintf("[[connection]]\nfrom='%d'\nto='%d'\n[[connection]]\nfrom='%d'\nto='%d'\ndelay=1\n", i, i+1, i+1, i)
			}),
			"connections":  hostile.Repeat(head+layer(0)+layer(1), func(i int) string { return "[[connection]]\nfrom='0'\nto='1'\n" }),
			"unknown keys": hostile.Repeat(head, func(i int) string { return fmt.Sprintf("[[layer]]\nx%d=1\n", i%9) }),
		}
	}, func(text []byte) error {
		_, err := graph.Parse(text)
		return err
	})
}
