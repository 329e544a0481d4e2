package model_test

import (
	"fmt"
	"testing"

	"rnnbench/internal/tomlfile/hostile"
	"rnnbench/model"
)

// TestHostileFiles: any machine of up to four megabytes is read or refused soon.
func TestHostileFiles(t *testing.T) {
	const head = "name = 'm'\nflops = 1\n"
	hostile.Try(t, head, func() map[string]string {
		return map[string]string{
			"levels":       hostile.Repeat(head, func(i int) string { return "[[level]]\nname='l'\np=1\nb=1\nm=1\n" }),
			"unknown keys": hostile.Repeat(head, func(i int) string { return fmt.Sprintf("[[level]]\nx%d=1\n", i%9) }),
		}
	}, func(text []byte) error {
		_, err := model.Parse(text)
		return err
	})
}
