package worker

import (
	"runtime/debug"
	"testing"
)

func TestBuildOf(t *testing.T) {
	revision, modified := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for want, settings := range map[string][]debug.BuildSetting{
		"":                       {modified},
		"0123456789":             {revision, {Key: "vcs.modified", Value: "false"}},
		"0123456789 and changes": {modified, revision},
	} {
		if got := buildOf(&debug.BuildInfo{Settings: settings}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
