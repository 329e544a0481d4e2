package bisect

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

// Commits builds the programs of the commits of a repository, in a working tree of its own.
type Commits struct {
	Repository git.Repository
	Build      string // command for the shell, in the working tree
	Built      string // file that it makes, relative to the working tree
	Dir        string // folder of the working tree and of the programs
	commits    []string
}

// Versions lists the commits from good to bad, along first parents.
func (c *Commits) Versions(ctx context.Context, good, bad string) ([]Version, error) {
	first, err := c.Repository.Commit(ctx, good)
	if err != nil {
		return nil, err
	}
	last, err := c.Repository.Commit(ctx, bad)
	if err != nil {
		return nil, err
	}
	if first == last {
		return nil, fmt.Errorf("%s and %s are the same commit", good, bad)
	}
	if _, err := c.Repository.Run(ctx, "merge-base", "--is-ancestor", first, last); err != nil {
		if shallow, _ := c.Repository.Run(ctx, "rev-parse", "--is-shallow-repository"); shallow == "true" {
			return nil, errors.New("the repository is shallow, so commits are missing: run git fetch --unshallow first")
		}
		return nil, fmt.Errorf("%s is no ancestor of %s: name an earlier commit of the same branch as the good one", good, bad)
	}
	text, err := c.Repository.Run(ctx, "log", "--first-parent", "--reverse", "--format=%H %s", first+".."+last)
	if err != nil {
		return nil, err
	}
	subject, err := c.Repository.Run(ctx, "log", "-1", "--format=%s", first)
	if err != nil {
		return nil, err
	}
	var list []Version
	for line := range strings.Lines(first + " " + subject + "\n" + text) {
		commit, note, _ := strings.Cut(strings.TrimSpace(line), " ")
		c.commits = append(c.commits, commit)
		list = append(list, Version{Name: commit[:min(len(commit), 10)], Note: note})
	}
	return list, nil
}

// Program builds a version, unless it was built before.
func (c *Commits) Program(ctx context.Context, version int) (string, error) {
	commit := c.commits[version]
	at, err := filepath.Abs(filepath.Join(c.Dir, "programs", commit[:min(len(commit), 10)]))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(at); err == nil {
		return at, nil
	}
	tree, err := c.checkout(ctx, commit)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", c.Build)
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("%w: %q: %s", ErrBuild, c.Build, lastLine(string(out), err))
	}
	from, err := os.Open(filepath.Join(tree, filepath.FromSlash(c.Built)))
	if err != nil {
		return "", fmt.Errorf("%w: %q made no file %s", ErrBuild, c.Build, c.Built)
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
func (c *Commits) checkout(ctx context.Context, commit string) (string, error) {
	tree, err := filepath.Abs(filepath.Join(c.Dir, "tree"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(tree, ".git")); err != nil {
		_, err := c.Repository.Run(ctx, "worktree", "add", "--force", "--detach", tree, commit)
		return tree, err
	}
	_, err = (git.Repository{Dir: tree}).Run(ctx, "checkout", "--force", "--detach", commit)
	return tree, err
}

// Close removes the working tree. Programs stay.
func (c *Commits) Close(ctx context.Context) {
	tree, err := filepath.Abs(filepath.Join(c.Dir, "tree"))
	if err == nil {
		_, _ = c.Repository.Run(ctx, "worktree", "remove", "--force", tree) // it may never have been made
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
