package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow returns the workflow of docs/ci.md that begins with a comment of the file's name.
func workflow(t *testing.T, file string) string {
	t.Helper()
	_, text, ok := strings.Cut(page(t, "docs/ci.md"), "    # "+file+"\n")
	if !ok {
		t.Fatalf("docs/ci.md has no %s", file)
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		code, ok := strings.CutPrefix(line, "    ")
		if !ok && strings.TrimSpace(line) != "" {
			break
		}
		b.WriteString(code)
	}
	return b.String()
}

// workflowSteps are the commands of the page's workflow for GitHub, and of the one for GitLab.
func workflowSteps(t *testing.T) (github, gitlab []string) {
	t.Helper()
	var hub struct {
		Jobs map[string]struct {
			Steps []struct{ Run string }
		}
	}
	if err := yaml.Unmarshal([]byte(workflow(t, ".github/workflows/speed.yml")), &hub); err != nil {
		t.Fatal(err)
	}
	for _, s := range hub.Jobs["speed"].Steps {
		if s.Run != "" {
			github = append(github, s.Run)
		}
	}
	var lab map[string]struct {
		Script      []string `json:"script"`
		AfterScript []string `json:"after_script"`
	}
	if err := yaml.Unmarshal([]byte(workflow(t, ".gitlab-ci.yml")), &lab); err != nil {
		t.Fatal(err)
	}
	return github, append(lab["speed"].Script, lab["speed"].AfterScript...)
}

var budget = regexp.MustCompile(`--budget \w+`)

// TestWorkflows runs the commands of docs/ci.md as their jobs would, but with short sweeps: for GitHub on a
// slower program, for GitLab on one that is not. The programs that comment are stand-ins.
func TestWorkflows(t *testing.T) {
	github, gitlab := workflowSteps(t)
	if len(github) != 4 || len(gitlab) != 3 {
		t.Fatalf("the page has the commands %q and %q", github, gitlab)
	}
	for _, c := range []struct {
		name   string
		steps  []string
		takes  string
		code   string
		wanted string
	}{
		{"github", github, "3ms", "exit status 4", "4 SLOWER"},
		{"gitlab", gitlab, "2ms", "", "4 SAME"},
	} {
		t.Run(c.name, func(t *testing.T) {
			workflowRepository(t, c.takes)
			for _, step := range c.steps {
				out, err := exec.Command("sh", "-ec", budget.ReplaceAllString(step, "$0 --max-runs 4 --min-effect 10%")).CombinedOutput()
				got := ""
				if err != nil {
					got = err.Error()
				}
				want := ""
				if strings.Contains(step, "rnnbench ci") {
					want = c.code
				}
				if got != want {
					t.Errorf("%s: %q, want %q: %s", step, got, want, out)
				}
			}
			said, err := os.ReadFile("commented")
			if err != nil || !strings.Contains(string(said), "### rnnbench: "+c.wanted) {
				t.Errorf("%v: the comment is %s", err, said)
			}
		})
	}
}

// workflowRepository makes and enters a repository of two commits. By make build, the first makes a program
// whose runs take 2 ms, the second one whose runs take as long as takes says.
func workflowRepository(t *testing.T, takes string) {
	t.Helper()
	for _, name := range []string{"git", "sh", "make"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not installed")
		}
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
		t.Setenv(name, "") // restored at the end
		os.Unsetenv(name)
	}
	tools := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"gh", "curl"} { // both get the comment's file
		write(filepath.Join(tools, name), "#!/bin/sh\ncat rnnbench-ci/summary.md > commented\ncase \"$*\" in *rnnbench-ci/summary.md*) ;; *) exit 1;; esac\n")
	}
	write(".gitignore", "bin/\nrnnbench-ci/\n")
	write("Makefile", "build:\n\tmkdir -p bin && sed 's|PROGRAM|"+os.Args[0]+"|' program > bin/rnnbench && chmod 755 bin/rnnbench\n")
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %s", args, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", ".")
	for i, each := range []string{"2ms", takes} {
		write("program", fmt.Sprintf("#!/bin/sh\n# commit %d\ncase $1 in sweep) export %s=%s;; esac\nexec PROGRAM \"$@\"\n", i, takesVariable, each))
		git("add", ".")
		git("commit", "-q", "-m", fmt.Sprintf("commit %d", i))
	}
	for name, value := range map[string]string{
		beProgram: "1", "PATH": tools + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"RNNBENCH_ROUNDS": "1", "RNNBENCH_MAX_ROUNDS": "1", "RNNBENCH_WARMUP": "0s", "RNNBENCH_MIN_TIME": "0s", "RNNBENCH_VERIFY": "off",
		"GITHUB_STEP_SUMMARY": filepath.Join(tools, "summary"), "NUMBER": "1", "CI_MERGE_REQUEST_DIFF_BASE_SHA": git("rev-parse", "HEAD^1"),
	} {
		t.Setenv(name, value)
	}
}
