package allreduce

import (
	"errors"
	"flag"
	"fmt"
)

// A Place says which replica a process is, and which file the replicas share.
type Place struct {
	Path           string
	Rank, Replicas int // the replica's number from 0; the number of replicas
}

// Args returns the command-line arguments that give a worker its place. ParseArgs reads them.
func (p Place) Args() []string {
	return []string{"--group", p.Path, "--replica", fmt.Sprintf("%d/%d", p.Rank+1, p.Replicas)}
}

// ParseArgs returns the place in a worker's arguments, or the zero Place if there are no arguments.
func ParseArgs(args []string) (Place, error) {
	var group, replica string
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.StringVar(&group, "group", "", "")
	f.StringVar(&replica, "replica", "", "")
	if err := f.Parse(args); err != nil {
		return Place{}, err
	}
	return ParsePlace(group, replica)
}

// ParsePlace returns the place with the file path and the replica I/N, counted from 1. It returns
// the zero Place if both are empty.
func ParsePlace(path, replica string) (Place, error) {
	if path == "" && replica == "" {
		return Place{}, nil
	}
	p := Place{Path: path}
	if n, err := fmt.Sscanf(replica, "%d/%d", &p.Rank, &p.Replicas); n != 2 || err != nil || path == "" {
		return Place{}, errors.New("allreduce: a replica needs --group FILE and --replica I/N")
	}
	p.Rank--
	return p, nil
}

// Join makes the caller the replica of p. It returns nil for the zero Place.
func (p Place) Join() (*Group, error) {
	if p == (Place{}) {
		return nil, nil
	}
	return Join(p.Path, p.Rank, p.Replicas)
}
