package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/internal/exit"
)

// TestBash completes words in a real bash, which compares candidates by itself. A comma is not the
// end of a list.
func TestBash(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "rnnbench")); err != nil {
		t.Fatal(err)
	}
	const ask = `_get_comp_words_by_ref() { words=("${line[@]}"); cword=$((${#line[@]} - 1)); cur=${line[cword]}; prev=${line[cword-1]}; }
eval "$(rnnbench completion bash)"
COMP_TYPE=9 COMP_WORDBREAKS=' "'"'"'><;|&('
read -ra line <<<"$1"
__start_rnnbench 2>/dev/null
for c in "${COMPREPLY[@]}"; do echo "${c%% *}"; done`
	for _, c := range []struct{ line, want string }{
		{"rnnbench sweep --impl naive,cud", "naive,cudnnstyle"},
		{"rnnbench sweep --device cuda:0 --impl naive,cud", "naive,cudnn naive,cudnnstyle"},
		{"rnnbench sweep --cell lstm,gr", "lstm,gru"},
		{"rnnbench sweep --impl naive,cudnnstyle:fus", "naive,cudnnstyle:fused="},
		{"rnnbench show --pivot hidden,im", "hidden,impl"},
		{"rnnbench sweep --point H=5,cell=lstm-p", "H=5,cell=lstm-peephole"},
		{"rnnbench compare x --fail-on slower,br", "slower,broken"},
		{"rnnbench sweep --precision fp32,f", "fp32,fp16"},
	} {
		cmd := exec.CommandContext(t.Context(), "bash", "--norc", "-c", ask, "-", c.line)
		cmd.Env = append(os.Environ(), beProgram+"=1", "PATH="+dir+":"+os.Getenv("PATH"), "COLUMNS=200")
		out, err := cmd.CombinedOutput()
		if got := strings.Join(slices.Sorted(strings.FieldsSeq(string(out))), " "); err != nil || got != c.want {
			t.Errorf("%s: completed to %q, want %q (%v)", c.line, got, c.want, err)
		}
	}
}

// TestCompleteLists completes the second item of each flag that takes a list of words.
func TestCompleteLists(t *testing.T) {
	p := newProgram(nil, nil, nil, nil)
	lists := 0
	for _, cmd := range everyCommand(p.root()) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			kind, _ := pflag.UnquoteUsage(f)
			if f.Hidden || !slices.Contains([]string{"LIST", "AXES", "ROWS,COLUMNS", "VERDICTS"}, kind) && f.Name != "preset" {
				return
			}
			line := "__complete " + strings.TrimPrefix(cmd.CommandPath(), "rnnbench ") + " --" + f.Name + " "
			first := candidates(t, line)
			if f.DefValue == "" && !slices.Contains([]string{"hidden", "batch", "steps", "layers"}, f.Name) && len(first) == 0 {
				t.Errorf("%s: nothing is offered", line)
			}
			if len(first) < 2 {
				return
			}
			lists++
			if second := candidates(t, line+first[0]+","); !slices.Contains(second, first[0]+","+first[1]) || slices.Contains(second, first[0]+","+first[0]) {
				t.Errorf("%s%s,: offered %q", line, first[0], second)
			}
		})
	}
	if lists < 20 {
		t.Errorf("only %d flags take lists of words", lists)
	}
}

// TestCompleteForDevice offers the knobs and techniques of the device that is measured.
func TestCompleteForDevice(t *testing.T) {
	on := func(device string) string {
		return strings.Join(slices.Concat(candidates(t, "__complete sweep --device "+device+" --impl persistent:"), candidates(t, "__complete sweep --device "+device+" --impl ")), " ") + " "
	}
	if on := on("cpu"); strings.Contains(on, "resident=") || strings.Contains(on, "cudnn ") || !strings.Contains(on, "bands=") {
		t.Errorf("on a CPU, offered %s", on)
	}
	if on := on("cuda:0"); !strings.Contains(on, "resident=") || !strings.Contains(on, "cudnn ") || strings.Contains(on, "bands=") {
		t.Errorf("on a GPU, offered %s", on)
	}
}

// candidates returns the words that complete a line.
func candidates(t *testing.T, line string) []string {
	t.Helper()
	args := strings.Split(line, " ")
	o := rnnbenchWith(t.Context(), "", args...)
	if o.code != exit.Done {
		t.Fatalf("%s: exit code %d: %s", line, o.code, o.out)
	}
	var words []string
	for l := range strings.Lines(o.out) {
		if word, _, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "\t"); !strings.HasPrefix(l, ":") {
			words = append(words, word)
		}
	}
	return words
}

func everyCommand(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		list = append(list, everyCommand(c)...)
	}
	return list
}
