package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/internal/exit"
	"rnnbench/record/files"
	"rnnbench/rnn"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/torch"
	"rnnbench/tuner"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
)

func exportCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "export -f FILE.npz [flags]",
		Short:   "Write inputs, weights, outputs and gradients of one point for PyTorch",
		GroupID: "inside",
		Long: `Export runs one technique at one point and writes its inputs and outputs as NumPy
arrays with PyTorch's names and layouts. To compare such a file with PyTorch, run
python3 scripts/check-pytorch.py --files FILE.npz. --impl reference exports the float64 reference.`,
		Example: `  rnnbench export --point H=64,B=4,T=10 --cell lstm --pass train --impl naive -f lstm.npz
  rnnbench export -H 128 -B 2 -T 5 --cell gru --impl cudnnstyle:fused=0 -f gru.npz
  rnnbench export -H 32 -B 1 -T 3 --impl reference -f reference.npz
  python3 -c "import numpy; print(*numpy.load('lstm.npz').items(), sep='\n')"`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	var s settings
	s.grid(cmd)
	s.measure(cmd, "seed", "data")
	s.device(cmd)
	s.source(cmd)
	var file string
	addGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVarP(&file, "file", "f", "", "output `FILE`; - for stdout")
		f.StringVarP(&file, "file-o", "o", "", "")
		f.Lookup("file-o").Hidden = true // for those who write -o FILE
	})
	_ = cmd.MarkFlagFilename("file", "npz") // the flag is there
	completeGrid(cmd)
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		switch {
		case file == "":
			return misused(cmd, errors.New("no output file: add -f FILE.npz"))
		case file == "-" && terminal(p.out):
			return misused(cmd, errors.New("cannot write arrays to a terminal: add -f FILE.npz"))
		case strings.EqualFold(filepath.Ext(file), ".npy"):
			return misused(cmd, fmt.Errorf("%s can hold only one array, but export writes several: use the ending .npz", file))
		}
		if err := s.resolve(p); err != nil {
			return misused(cmd, err)
		}
		b, err := bench.Open(s.Options, p)
		if err != nil {
			return misused(cmd, err)
		}
		defer b.Close()
		if len(s.Config.Grid.Impl) == 0 {
			s.Config.Grid.Impl = []string{"naive"}
		}
		v := b.Vocabulary()
		v.Impls = append(v.Impls, bench.Reference)
		layouts, err := b.OnePoint(s.Config.Grid, v)
		if err != nil {
			return misused(cmd, err)
		}
		b.TellChoices(specsOf(layouts))
		if len(layouts) > 1 {
			return misused(cmd, fmt.Errorf("export writes one answer, but the flags name %d techniques: name one, as in --impl naive", len(layouts)))
		}
		return export(ctx, p, b, layouts[0], s.Config.Measure, file)
	})
}

func export(ctx context.Context, p *program, b *bench.Bench, l *tuner.Layout, m config.Measure, file string) error {
	if l.Problem.Calls > 0 {
		return exit.Misuse(errors.New("export writes the answer of one run: omit --calls"), "")
	}
	if l.Fit(b.Free()); l.Reason != "" {
		return errors.New(l.Reason)
	}
	done := sync.OnceFunc(p.Busy(fmt.Sprintf("computing %v", l.Point)))
	defer done()
	data := rnn.NewData(l.Problem, m.Seed, l.Problem.Batch, m.Data)
	from := torch.Source{Technique: l.Spec.Name, Seed: m.Seed, Distribution: m.Data}
	var answer []oracle.Tensor
	if l.Spec.Name == bench.Reference {
		answer = oracle.Reference(data)
	} else {
		var err error
		if answer, err = b.Answer(l, data); err != nil {
			return err
		}
		from.Knobs, from.Device, from.DeviceKnobs = l.Knobs, b.Info.Key, l.DeviceKnobs
	}
	ctx, stop := onSignal(ctx) // so that no half-written file is left
	defer stop()
	write := func(w io.Writer) error { return torch.Export(until{ctx, w}, data, answer, from) }
	if file == "-" {
		return write(p.out)
	}
	if err := files.Write(file, write); err != nil {
		return err
	}
	done()
	p.Note("wrote %s: %v by %s", file, l.Point, l.Spec.Label)
	return nil
}

// until is a writer that fails once ctx has ended.
type until struct {
	ctx context.Context
	to  io.Writer
}

func (u until) Write(data []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.to.Write(data)
}
