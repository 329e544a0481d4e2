package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/device/allreduce"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/axis"
	"rnnbench/train"
	"rnnbench/train/data"
	"rnnbench/train/training"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/plan"
	"rnnbench/tuner/progress"
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
clip limits the norm of all gradients; 0 is no limit. scale multiplies the loss, so that
small gradients do not underflow in 16 bits; 0 is 1024 in fp16 and 1 elsewhere.`,
		Example: `  rnnbench train --data copy:delay=20 -H 128 -B 32 -T 60 --iterations 2000
  rnnbench train --data text:novel.txt --cell lstm,sru -H 256 --optimizer adam:lr=2e-3:clip=1
  rnnbench train --impl naive,persistent --precision bf16 --device cuda:0 --time 2m
  rnnbench train --data words --cell lstm-c -H 512 -B 8 -T 128 --history 128 --impl scc
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
		fs.IntVar(&f.want.Iterations, "iterations", 1000, "stop after `N` iterations; 0: no limit")
		fs.DurationVar(&f.time, "time", 0, "stop after this `TIME` of training; 0: no limit")
		fs.Float64Var(&f.want.Loss, "loss", 0, "stop at this `LOSS`, in nats, on held-out data if that is evaluated")
		fs.IntVar(&f.want.Every, "every", 0, "write a record and a checkpoint every `N` iterations (default: 20 records)")
		fs.IntVar(&f.want.Replicas, "replicas", 0, "train by `N` processes that share each minibatch: on a CPU they divide the cores, on GPUs each has its own, from --device on; 0: one device")
		fs.IntVar(&f.want.Batches, "held-out", 4, "evaluate `N` held-out minibatches with each record; 0: none")
		fs.BoolVar(&f.want.Beside, "beside", false, "time forward and backward alone, in turns with the training")
	})
	addGroup(cmd, axesTitle, func(fs *pflag.FlagSet) {
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
	f.times = true
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
		fs.StringVar(&f.resume, "resume", "", "resume a `RUN`: its folder, id or label, or a results folder (its latest run); without a value, the latest")
		f.shardFlag(fs)
		f.add(fs, "out", "DIR", "")
		f.add(fs, "label", "WORD", "")
		fs.BoolVar(&f.hideHost, "no-hostname", false, "omit the host name from the run")
	})
}

// indented joins lines of a help text, each indented by two spaces.
func indented(lines []string) string { return "  " + strings.Join(lines, "\n  ") }

// setLimits sets f.want from the command line, which overrides the limits of the run to resume.
func (f *trainFlags) setLimits(cmd *cobra.Command, was *record.TrainingPlan) error {
	given := cmd.Flags().Changed
	f.want.Time = f.time.Seconds()
	if was != nil {
		if given("data") && f.want.Data != was.Data || given("optimizer") && f.want.Optimizer != was.Optimizer {
			return errors.New("--resume goes on with the task and the optimiser of the run: omit --data and --optimizer")
		}
		want := *was
		for name, set := range map[string]func(){
			"iterations": func() { want.Iterations = f.want.Iterations }, "time": func() { want.Time = f.want.Time },
			"loss": func() { want.Loss = f.want.Loss }, "every": func() { want.Every = f.want.Every }, "held-out": func() { want.Batches = f.want.Batches },
			"replicas": func() { want.Replicas = f.want.Replicas }, "beside": func() { want.Beside = f.want.Beside },
		} {
			if given(name) {
				set()
			}
		}
		f.want = want
	} else if !given("iterations") && (given("time") || given("loss")) {
		f.want.Iterations = 0
	}
	w := f.want
	switch {
	case w.Replicas < 0 || w.Replicas > allreduce.MostReplicas:
		return fmt.Errorf("--replicas: %d: choose 1 to %d, or 0 for one device alone", w.Replicas, allreduce.MostReplicas)
	case w.Beside && w.Replicas > 0:
		return errors.New("--beside times the pass of one device, not of several replicas: omit one of --beside and --replicas")
	case w.Iterations < 0 || w.Time < 0 || w.Every < 0 || w.Batches < 0:
		return errors.New("--iterations, --time, --every and --held-out cannot be negative")
	case w.Iterations == 0 && w.Time == 0 && w.Loss <= 0:
		return errors.New("training would never stop: set --iterations, --time or --loss")
	}
	if w.Every == 0 {
		f.want.Every = 100
		if w.Iterations > 0 {
			f.want.Every = max(1, w.Iterations/20)
		}
	}
	return nil
}

func trainAll(ctx context.Context, p *program, cmd *cobra.Command, f *trainFlags) error {
	f.values["pass"] = &texts{list: []string{"train"}}
	if f.values["history"].list == nil && f.resume == "" {
		f.values["history"].list = []string{"none"}
	}
	if f.values["impl"].list == nil && f.resume == "" {
		f.values["impl"].list = []string{autoName}
	}
	c, err := f.resolve(p)
	if err != nil {
		return misused(cmd, err)
	}
	if err := f.readShard(p); err != nil {
		return misused(cmd, err)
	}
	var before *record.Manifest
	var was *record.TrainingPlan
	if f.resume != "" {
		if c, before, err = f.resumed(p, c.Dir); err != nil {
			return misused(cmd, err)
		}
		if was = before.Training; was == nil {
			return usage(fmt.Errorf("run %s is not a run of train", before.Run), "rnnbench sweep --resume "+f.resume)
		}
	}
	if err := f.setLimits(cmd, was); err != nil {
		return misused(cmd, err)
	}
	if f.print {
		if err := f.checkWords(); err != nil {
			return misused(cmd, err)
		}
		return config.Print(p.out, c)
	}
	env := environment(f.hideHost)
	b, err := p.open(&f.settings, c)
	if err != nil {
		return misused(cmd, err)
	}
	defer b.Close()
	if err := setTaskAxes(f.want.Data, c.Grid, b); err != nil {
		return misused(cmd, err)
	}
	q, err := planFor(p, c, b)
	if err != nil {
		return misused(cmd, err)
	}
	q.Kind = "train " + f.want.Data + " " + f.want.Optimizer
	if q, before, err = f.divideTraining(p, c, b, q, before); err != nil {
		return misused(cmd, err)
	}
	if before != nil {
		if differs := q.Mismatch(*before, b.record()); differs != "" {
			return usage(fmt.Errorf("run %s cannot be resumed: %s", before.Run, differs), "omit --resume to start a new run")
		}
	}
	if err := f.checkPoints(q); err != nil {
		return misused(cmd, err)
	}
	tellChoices(p, q.Specs())
	resume := ""
	if before != nil {
		resume = runPath(f.resume, c.Dir)
	}
	run, err := begin(p, c, b, q, resume, env)
	if err != nil {
		return err
	}
	if err := run.Update(func(m *record.Manifest) { m.Training = &f.want }); err != nil {
		return err
	}
	_, had, _, err := record.Read(run.Dir())
	if err != nil {
		return errors.Join(err, run.Finish(exitError))
	}
	control := job{bench: b, plan: q.Control(), measure: c.Measure, skip: run.Done, emit: run.Append}
	return f.carryOutTraining(ctx, p, b.newTraining(p, q.Networks(), c.Measure.Seed, run, had), control)
}

// divideTraining returns q with its networks, or the shard's, to be trained until the wanted
// limits. A resumed shard keeps the division that it began with.
func (f *trainFlags) divideTraining(p *program, c config.Config, b *bench, q plan.Plan, before *record.Manifest) (plan.Plan, *record.Manifest, error) {
	limits, asked := f.want, before != nil
	if asked && before.Plan.Shard != nil && before.Plan.Shard.Limits != nil {
		limits = *before.Plan.Shard.Limits
	}
	q, before, err := f.divide(p, c, b, q.Trained(limits), before)
	if err != nil || q.Shard == nil {
		return q, before, err
	}
	q.Shard.Limits = &limits
	if before != nil && !asked {
		if was := before.Plan.Shard.Limits; was.Options() != limits.Options() {
			return q, before, usage(fmt.Errorf("shard %v in %s was begun with %s, not with %s", q.Shard, f.resume, was.Options(), limits.Options()),
				"rnnbench train --resume "+f.resume+" takes other limits; --label WORD or --out DIR begins another run of the shard")
		}
		if before.Training != nil { // --resume may have raised them
			f.want = *before.Training
		}
	}
	return q.Until(f.want), before, nil
}

// setTaskAxes sets the axes that a task determines, such as input and output.
func setTaskAxes(spec string, r grid.Request, b *bench) error {
	g, err := grid.New(r, b.vocabulary())
	if err != nil {
		return err
	}
	points, err := g.Points()
	if err != nil || len(points) == 0 {
		return err
	}
	source, err := data.Open(spec, data.Options{Batch: points[0].Batch, Steps: points[0].Steps})
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	s, axes := source.Shape(), r.Axes
	axes["input"], axes["output"], axes["onehot"], axes["weighted"] = strconv.Itoa(s.Input), strconv.Itoa(s.Output), strconv.FormatBool(s.OneHot), strconv.FormatBool(s.Weighted)
	for name, n := range map[string]int{"symbols": s.Symbols, "embedding": s.Embedding, "groups": s.Groups} {
		if axes[name] = strconv.Itoa(n); n == 0 {
			axes[name] = "none"
		}
	}
	return nil
}

// checkWords checks the optimiser and the task without a device and without files.
func (f *trainFlags) checkWords() error {
	if _, err := train.ParseOptimizer(f.want.Optimizer, rnn.FP32); err != nil {
		return fmt.Errorf("--optimizer: %w", err)
	}
	if err := data.Check(f.want.Data); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	return nil
}

// checkPoints checks the optimiser and the task at each point, before anything is trained.
func (f *trainFlags) checkPoints(q plan.Plan) error {
	return q.Each(func(at record.Point, _ []grid.Spec) error {
		_, err := train.ParseOptimizer(f.want.Optimizer, rnn.Precision(slices.Index(rnn.Precisions(), at.Precision)))
		if err != nil {
			return fmt.Errorf("--optimizer: %w", err)
		}
		source, err := data.Open(f.want.Data, data.Options{Batch: at.Batch, Steps: at.Steps})
		if err != nil {
			return fmt.Errorf("--data: %w", err)
		}
		if at.History > 0 && !source.Shape().Continues {
			return fmt.Errorf("--history %d: minibatches of %s do not continue the ones before: use --data text or words, or omit --history", at.History, f.want.Data)
		}
		return checkReplicas(at, f.want.Replicas)
	})
}

// checkReplicas returns an error if that many replicas cannot train a point together.
func checkReplicas(at record.Point, replicas int) error {
	switch {
	case replicas > at.Batch:
		return fmt.Errorf("--replicas: %d replicas cannot share a minibatch of %d: each needs at least one sequence", replicas, at.Batch)
	case replicas > 0 && at.History > 0:
		return errors.New("--replicas: replicas keep no steps of earlier minibatches: omit --history")
	}
	return nil
}

// carryOutTraining measures the control point of a shard and trains all networks. It closes the
// run and prints the last record of each network.
func (f *trainFlags) carryOutTraining(ctx context.Context, p *program, j *training.Job, control job) error {
	show := progress.New(p.progressOptions(control.plan.Records()), nil)
	ctx, stop := interruptible(ctx, show)
	defer stop()
	control.show, control.measure.Verify = show, true
	err := control.run(ctx)
	if err == nil {
		err = j.Do(ctx)
	}
	show.Close()
	last := j.Last
	if len(j.Networks) == 0 && err == nil {
		p.note("the shard has no network of its own, because the plan has fewer points than shards")
		last, err = j.Run.Records()
	}
	code, outcome := exitCode(last, err, false, false)
	if bad := j.Run.Finish(code); bad != nil && outcome == nil {
		return bad
	}
	p.note("records and checkpoints in %s", j.Run.Dir())
	if len(last) > 0 {
		if err := f.printLast(p, j.Run, last); err != nil {
			return err
		}
	}
	if outcome == nil {
		return nil
	}
	hint := reasons(last, f.format)
	if code == exitInterrupted {
		hint = "rnnbench train --resume " + j.Run.Dir() + " resumes the run"
	}
	return &failure{code, outcome, hint}
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
