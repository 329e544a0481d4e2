package bisect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"rnnbench/record/build"
)

// Commits are versions that are the commits of a repository.
type Commits struct {
	build.Tree
	commits []string
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
		if c.Repository.Shallow(ctx) {
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
		list = append(list, Version{Name: build.Name(commit), Note: note})
	}
	return list, nil
}

// Program builds a version, unless it was built before.
func (c *Commits) Program(ctx context.Context, version int) (string, error) {
	return c.Tree.Program(ctx, c.commits[version])
}
