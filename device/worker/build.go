package worker

import "runtime/debug"

// Build returns the commit that this program was built from, followed by " and changes" if the tree
// was modified. It returns "" if the commit is unknown.
func Build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) (commit string) {
	changes := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 10)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changes = " and changes"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + changes
}
