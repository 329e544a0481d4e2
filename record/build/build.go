// Package build makes programs from the commits of a repository.
package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"rnnbench/internal/git"
	"rnnbench/record/files"
)

// ErrFailed says that a commit has no program.
var ErrFailed = errors.New("it cannot be built")

// A Tree is a working tree of its own, in which commits are built one after another.
type Tree struct {
	Repository git.Repository
	Command    string // for the shell, in the working tree
	Makes      string // file that it makes, relative to the working tree
	Dir        string // folder of the working tree and of the programs
}

// Name is the short name of a commit.
func Name(commit string) string { return commit[:min(len(commit), 10)] }

// Program builds a commit, unless it was built before, and returns the path of its program.
func (t *Tree) Program(ctx context.Context, commit string) (string, error) {
	at, err := filepath.Abs(filepath.Join(t.Dir, "programs", Name(commit)))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(at); err == nil {
		return at, nil
	}
	tree, err := t.checkout(ctx, commit)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", t.Command)
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("%w: %q: %s", ErrFailed, t.Command, lastLine(string(out), err))
	}
	from, err := os.Open(filepath.Join(tree, filepath.FromSlash(t.Makes)))
	if err != nil {
		return "", fmt.Errorf("%w: %q made no file %s", ErrFailed, t.Command, t.Makes)
	}
	defer from.Close()
	if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return "", err
	}
	if err := files.Replace(at, func(w io.Writer) error { _, err := io.Copy(w, from); return err }); err != nil {
		return "", err
	}
	return at, os.Chmod(at, 0o755)
}

// checkout makes the working tree one of the commit. It leaves ignored files, which may be a build's cache.
func (t *Tree) checkout(ctx context.Context, commit string) (string, error) {
	tree, err := filepath.Abs(filepath.Join(t.Dir, "tree"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(tree, ".git")); err != nil {
		_, err := t.Repository.Run(ctx, "worktree", "add", "--force", "--detach", tree, commit)
		return tree, err
	}
	_, err = (git.Repository{Dir: tree}).Run(ctx, "checkout", "--force", "--detach", commit)
	return tree, err
}

// Close removes the working tree. Programs stay.
func (t *Tree) Close(ctx context.Context) {
	tree, err := filepath.Abs(filepath.Join(t.Dir, "tree"))
	if err == nil {
		_, _ = t.Repository.Run(ctx, "worktree", "remove", "--force", tree) // it may never have been made
	}
}

// lastLine is the last line that a failed command printed, or else how it ended.
func lastLine(text string, err error) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return err.Error()
}
