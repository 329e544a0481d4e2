// Package modelfile reads the recurrent layers of a model's file, with their own weights. It runs
// nothing that a file says, and never takes more memory than a small multiple of the file.
package modelfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"rnnbench/internal/nearest"
	"rnnbench/rnn"
	"rnnbench/rnn/axis"
)

// A Layer is a recurrent layer of a file, or a stack of equal ones that the file holds as one.
type Layer struct {
	Name     string // unique in the file: of the node, or of the module; slashes stand between the parts of a path
	ID       string // of the weights: the file's name, the shortest end of Name that is unique there, and a hash of the tensors
	Operator string // as the file calls it: LSTM, GRU, RNN, or "" where it does not say

	// Declined is why the layer cannot be measured; "": it can. The fields below are then what is known.
	Declined string

	// Note is what the user should know of a layer that can be measured; "": nothing.
	Note string

	// Point has the layer's cell, input, hidden, layers, direction and projection. Nothing else is set.
	Point axis.Point

	// Tensors are the parameters in the names and layouts of rnn.Data, all of them. First states, such as
	// h0_l0, are there where the file gives them: a row for each sequence, or one row for all. Where
	// Zeros is set, first states that are not there are 0; else the model's user gives them.
	Tensors []rnn.Tensor
	Zeros   bool

	// Steps and Batch are the sizes of the input that the file gives; 0: any.
	Steps, Batch int
}

// Parameters is the number of values of all parameters, without first states.
func (l Layer) Parameters() int {
	n := 0
	for _, t := range l.Tensors {
		if !t.PerSequence {
			n += len(t.Values)
		}
	}
	return n
}

// A File is what a model's file holds.
type File struct {
	Format string // one of Formats
	Layers []Layer
}

// A source is an opened file.
type source struct {
	io.ReaderAt
	size int64
	path string // names files beside it
}

// A format is a row of the table of formats.
type format struct {
	name string
	is   func(s source) bool // by the first bytes and the name
	read func(s source) ([]Layer, error)
}

// formats are tried in order.
var formats = []format{
	{"ONNX", isONNX, readONNX},
	{"safetensors", isSafetensors, readSafetensors},
	{"PyTorch", isTorch, readTorch},
}

// Formats lists the formats by name.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// Read reads the recurrent layers of the file at path. Errors name the file.
func Read(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	s := source{f, info.Size(), path}
	for _, format := range formats {
		if !format.is(s) {
			continue
		}
		layers, err := format.read(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(layers) == 0 {
			return nil, fmt.Errorf("%s: %w", path, errNone)
		}
		identify(path, layers)
		return &File{Format: format.name, Layers: layers}, nil
	}
	return nil, fmt.Errorf("%s is no model: it must be a file of %s", path, strings.Join(Formats(), " or "))
}

var errNone = errors.New("the model has no recurrent layer")

// Pick returns the layers of those names in files, or all layers that can be measured if there are no
// names. A layer has its name, its short name and, in its file, its number from 1.
func Pick(files []*File, names []string) ([]Layer, error) {
	var all []Layer
	var known []string
	numbers := []string{}
	for _, f := range files {
		for i, l := range f.Layers {
			all, known, numbers = append(all, l), append(known, l.Name), append(numbers, strconv.Itoa(i+1))
		}
	}
	var picked []Layer
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			i = slices.IndexFunc(all, func(l Layer) bool { return l.Short() == plain(name) })
		}
		if i < 0 {
			i = slices.Index(numbers, name)
		}
		if i < 0 {
			return nil, nearest.Unknown("layer", name, known)
		}
		if why := all[i].Declined; why != "" {
			return nil, fmt.Errorf("layer %s cannot be measured: %s", name, why)
		}
		picked = append(picked, all[i])
	}
	if len(names) > 0 {
		return picked, nil
	}
	for _, l := range all {
		if l.Declined == "" {
			picked = append(picked, l)
		}
	}
	if len(picked) == 0 && len(all) > 0 {
		return nil, fmt.Errorf("no layer can be measured: %s: %s", all[0].Name, all[0].Declined)
	}
	return picked, nil
}
