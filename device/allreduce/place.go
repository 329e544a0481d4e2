package allreduce

import (
	"errors"
	"flag"
	"fmt"
)

// A Place is which replica a process is, and the file that it shares with the others.
type Place struct {
	Path           string
	Rank, Replicas int // from 0; of so many
}

// Args are the arguments by which a worker is told its place. ParseArgs reads them.
func (p Place) Args() []string {
	return []string{"--group", p.Path, "--replica", fmt.Sprintf("%d/%d", p.Rank+1, p.Replicas)}
}

// ParseArgs is the place that a worker's arguments name; the zero Place for no arguments.
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

// ParsePlace is the place that is spelled PATH and I/N, counted from 1; the zero Place for
// neither.
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

// Join makes the caller the replica of that place; nil for the zero Place.
func (p Place) Join() (*Group, error) {
	if p == (Place{}) {
		return nil, nil
	}
	return Join(p.Path, p.Rank, p.Replicas)
}
