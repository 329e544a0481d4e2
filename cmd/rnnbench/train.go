package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/axis"
	"rnnbench/train"
	"rnnbench/train/data"
	"rnnbench/train/training"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/config"
	"rnnbench/tuner/job"
)

// trainFlags are the flags of train.
type trainFlags struct {
	sweepFlags
	want record.TrainingPlan
	time time.Duration
}

func trainCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "train [flags]",
		Short:   "Train networks and record how the loss falls",
		GroupID: "measure",
		Long: `Train trains a network by each technique on a task, from the same first weights
and on the same minibatches. It records the loss on training and held-out data against
iterations and time. It saves a checkpoint with each record. Ctrl-C loses nothing;
--resume continues from the checkpoint, bit for bit. The column time is the median time
of an iteration: forward pass, backward pass and update.

text and words carry states from minibatch to minibatch. With --history, errors also flow
back through that many steps of earlier minibatches; only technique scc can do so.

Tasks:
` + indented(data.Names()) + `

Optimisers, with their usual settings:
` + indented(train.OptimizerHelp()) + `
anneal divides lr after each epoch iterations. clip limits the norm of all gradients; 0 is no limit. scale multiplies the loss, so that
small gradients do not underflow in 16 bits; 0 is 1024 in fp16 and 1 elsewhere.`,
		Example: `  rnnbench train --data copy:delay=20 -H 128 -B 32 -T 60 --iterations 2000
  rnnbench train --data text:novel.txt --cell lstm,sru -H 256 --optimizer adam:lr=2e-3:clip=1
  rnnbench train --impl naive,persistent --precision bf16 --device cuda:0 --time 2m
  rnnbench train --data words --cell lstm-c -H 512 -B 8 -T 128 --history 128 --impl scc
  rnnbench train --data speech:phonemes=2 --network speech:small -B 32 -T 100
  rnnbench train --resume out
  rnnbench train --cell gru,lstm -H 128:512:x2 --shard 3/16  # one job of many
  rnnbench plot --x wall --y loss -f loss.svg`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := &trainFlags{}
	addGroup(cmd, "Training", func(fs *pflag.FlagSet) {
		fs.StringVar(&f.want.Data, "data", "copy", "`TASK` to learn, with its options")
		fs.StringVar(&f.want.Optimizer, "optimizer", "adam", "`RULE` by which weights change, with its settings")
		fs.BoolVar(&f.want.Glorot, "glorot", false, "draw the first weights as Glorot and Bengio (2010), with biases of 0, in place of PyTorch's way")
		fs.IntVar(&f.want.Iterations, "iterations", 1000, "stop after `N` iterations; 0: no limit")
		fs.DurationVar(&f.time, "time", 0, "stop after this `TIME` of training; 0: no limit")
		fs.Float64Var(&f.want.Loss, "loss", 0, "stop at this `LOSS`, in nats, on held-out data if that is evaluated")
		fs.IntVar(&f.want.Every, "every", 0, "write a record and a checkpoint every `N` iterations (default: 20 records)")
		fs.IntVar(&f.want.Replicas, "replicas", 0, "train by `N` processes that share each minibatch: on a CPU they divide the cores, on GPUs each has its own, from --device on; 0: one device")
		fs.IntVar(&f.want.Batches, "held-out", 4, "evaluate `N` held-out minibatches with each record; 0: none")
		fs.BoolVar(&f.want.Beside, "beside", false, "time forward and backward alone, in turns with the training")
	})
	addGroup(cmd, axesTitle, func(fs *pflag.FlagSet) {
		f.networkFlag(fs)
		for _, a := range axis.Flags() {
			if a.Train {
				f.axis(fs, a)
			}
		}
	})
	addGroup(cmd, "Techniques", func(fs *pflag.FlagSet) {
		f.add(fs, "impl", "LIST", "")
		impl := fs.Lookup("impl")
		impl.Usage = strings.Replace(impl.Usage, "(default all)", "(default auto)", 1)
		f.add(fs, "skip-impl", "LIST", "")
		f.wisdomFlags(fs)
	})
	f.Times = true
	f.measure(cmd, "seed", "point-timeout", "isolate")
	f.device(cmd)
	f.source(cmd)
	f.trainRunFlags(cmd)
	progressFlag(p, cmd)
	f.format = "table"
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		fs.VarP(choice{&f.format, "format", recordFormats()}, "format", "o", "how to print: "+strings.Join(recordFormats(), ", "))
	})
	completeGrid(cmd)
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error { return trainAll(ctx, p, cmd, f) })
}

// trainRunFlags adds the flags of the run that train creates.
func (f *trainFlags) trainRunFlags(cmd *cobra.Command) {
	addGroup(cmd, "Run", func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.print, "print-config", false, "print the effective settings as a configuration file")
		f.resumeFlag(fs)
		f.shardFlag(fs)
		f.add(fs, "out", "DIR", "")
		f.add(fs, "label", "WORD", "")
		fs.BoolVar(&f.HideHost, "no-hostname", false, "omit the host name from the run")
	})
}

// indented joins lines of a help text, each indented by two spaces.
func indented(lines []string) string { return "  " + strings.Join(lines, "\n  ") }

func trainAll(ctx context.Context, p *program, cmd *cobra.Command, f *trainFlags) error {
	f.set("pass", "train")
	for name, value := range map[string]string{"history": "none", "impl": auto.Name} {
		if !f.given(name) && f.Resume == "" {
			f.set(name, value)
		}
	}
	if err := f.resolve(p); err != nil {
		return misused(cmd, err)
	}
	before, err := f.Prepare()
	if err != nil {
		return misused(cmd, err)
	}
	var was *record.TrainingPlan
	if before != nil {
		if was = before.Training; was == nil {
			return job.NotOf("train", *before)
		}
	}
	f.want.Time = f.time.Seconds()
	if f.want, err = training.Limits(f.want, cmd.Flags().Changed, was); err != nil {
		return misused(cmd, err)
	}
	if f.print {
		if err := training.CheckWords(f.want); err != nil {
			return misused(cmd, err)
		}
		return config.Print(p.out, f.Config)
	}
	t, err := job.OpenTraining(&f.Request, f.want, before, p)
	if err != nil {
		return misused(cmd, err)
	}
	defer t.Close()
	t.Bench.TellChoices(t.Agenda.Specs())
	return t.Train(ctx, f.format, func(run *record.Run, last []record.Record) error { return f.printLast(p, run, last) })
}

// printLast prints each network's last record, with iteration times of its whole training.
func (f *trainFlags) printLast(p *program, run *record.Run, last []record.Record) error {
	if f.format == "jsonl" || f.format == "benchfmt" {
		return records(p, last, f.format, "")
	}
	all, err := run.Records()
	if err != nil {
		return err
	}
	last = slices.Clone(last)
	for i := range last {
		last[i] = record.WholeTraining(last[i], all)
	}
	t, err := table.Records(last, "")
	if err != nil {
		return err
	}
	return t.Write(p.out, f.format, p.style())
}
