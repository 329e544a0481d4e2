package wisdom_test

import (
	"fmt"
	"testing"

	"rnnbench/internal/tomlfile/hostile"
	"rnnbench/tuner/wisdom"
)

// TestHostileFiles: any book of up to four megabytes is quickly read or refused.
func TestHostileFiles(t *testing.T) {
	head := fmt.Sprintf("schema = %q\n", wisdom.Schema)
	entry := func(i int) string {
		return fmt.Sprintf("[[entry]]\ndevice='d'\ncache='hot'\ncell='c'\npass='p'\nprecision='f'\nhidden=%d\ninput=1\nbatch=1\nsteps=1\nlayers=1\nimpl='i'\nseconds=1\n", i+1)
	}
	hostile.Try(t, head, func() map[string]string {
		return map[string]string{
			"entries":      hostile.Repeat(head, entry),
			"unknown keys": hostile.Repeat(head+entry(0), func(i int) string { return fmt.Sprintf("[[entry]]\nx%d=1\n", i%9) }),
		}
	}, func(text []byte) error {
		_, err := wisdom.Parse(text, "w.toml")
		return err
	})
	b, err := wisdom.Parse([]byte(hostile.Repeat(head, entry)), "w.toml")
	if err != nil || len(b.Entries) < 1000 {
		t.Errorf("a book of many entries is not read: %v", err)
	}
}
