// Package git runs the program git.
package git

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Repository is the folder of a repository, or a folder inside it.
type Repository struct{ Dir string }

// Run runs git and returns what it prints, without the space around it. The error is one line of what git says.
func (r Repository) Run(ctx context.Context, args ...string) (string, error) {
	var out, text bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.Dir, &out, &text
	if err := cmd.Run(); err != nil {
		return "", r.explain(ctx, args, text.String(), err)
	}
	return strings.TrimSpace(out.String()), nil
}

// explain says in one line why git failed.
func (r Repository) explain(ctx context.Context, args []string, text string, err error) error {
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("the program git is not installed")
	case !errors.As(err, &exit):
		return fmt.Errorf("git: %w", err)
	case strings.Contains(text, "not a git repository"):
		return fmt.Errorf("%s is not in a git repository", r.Dir)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return fmt.Errorf("git %s: %s", args[0], strings.TrimPrefix(first, "fatal: "))
}

// Commit returns the commit that a revision names.
func (r Repository) Commit(ctx context.Context, revision string) (string, error) {
	if strings.HasPrefix(revision, "-") {
		return "", fmt.Errorf("%q is not a revision", revision)
	}
	commit, err := r.Run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil && strings.HasPrefix(err.Error(), "git rev-parse:") {
		return "", fmt.Errorf("%q is not a commit of the repository in %s", revision, r.Dir)
	}
	return commit, err
}

// Shallow reports whether the repository lacks earlier commits.
func (r Repository) Shallow(ctx context.Context) bool {
	text, _ := r.Run(ctx, "rev-parse", "--is-shallow-repository")
	return text == "true"
}

// Dirty reports whether files that git follows differ from the checked-out commit.
func (r Repository) Dirty(ctx context.Context) (bool, error) {
	text, err := r.Run(ctx, "status", "--porcelain", "--untracked-files=no")
	return text != "", err
}

// Extract writes the files of a revision below a folder of the repository, such as ".", into the folder to.
// keep says which files, by their path with slashes.
func (r Repository) Extract(ctx context.Context, revision, folder, to string, keep func(path string) bool) error {
	commit, err := r.Commit(ctx, revision)
	if err != nil {
		return err
	}
	if folder != "." {
		if _, err := r.Run(ctx, "cat-file", "-e", commit+":"+folder); err != nil {
			return fmt.Errorf("%s has no folder %s", revision, folder)
		}
		commit += ":" + folder
	}
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", "archive", "--format=tar", commit)
	cmd.Dir, cmd.Stderr = r.Dir, &text
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("git: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return r.explain(ctx, cmd.Args[1:], "", err)
	}
	bad := unpack(pipe, to, keep)
	if bad != nil {
		_, _ = io.Copy(io.Discard, pipe) // git ends by itself
	}
	if err := cmd.Wait(); err != nil {
		return r.explain(ctx, cmd.Args[1:], text.String(), err)
	}
	return bad
}

// unpack writes the kept files of an archive.
func unpack(from io.Reader, to string, keep func(path string) bool) error {
	for archive := tar.NewReader(from); ; {
		head, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("git archive: %w", err)
		}
		if head.Typeflag != tar.TypeReg || !filepath.IsLocal(head.Name) || !keep(head.Name) {
			continue
		}
		at := filepath.Join(to, filepath.FromSlash(head.Name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		f, err := os.Create(at)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, archive)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}
