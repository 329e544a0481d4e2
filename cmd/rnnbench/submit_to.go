package main

import (
	"context"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/cluster"
)

func submitSlurm(p *program) *cobra.Command {
	f, l, gres := &submitFlags{}, &cluster.Slurm{}, ""
	cmd := &cobra.Command{
		Use:   "slurm [flags] -- COMMAND...",
		Short: "Submit shards as a Slurm job array",
		Long: `Submit shards as a Slurm job array, and a job that merges them after all have ended.
The folder of submissions must be shared by all nodes. Without --gres, a shard has its node
to itself, since other jobs would disturb it.

A job gets SIGTERM a minute before its time limit, and keeps all finished records. A job
that was preempted, or whose node was lost, is requeued and continues from its finished records.`,
		Example: `  rnnbench submit slurm --shards 16 --partition gpu --gres gpu:1 --time 2h -- sweep --preset deepbench-infer --device cuda:0
  rnnbench submit slurm --shards 8 --sbatch=--qos=high --sbatch=--reservation=night -- tune -H 256:1024:x2
  rnnbench submit slurm --group h100=8:gpu:h100:1 --group a100=16:gpu:a100:1 --copy -- sweep --preset quick --device cuda:0`,
		Args:              submitArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.flags(cmd, "NAME=SHARDS:GRES")
	addGroup(cmd, "Slurm", func(fs *pflag.FlagSet) {
		fs.StringVar(&l.Partition, "partition", "", "`PARTITION` of the jobs")
		fs.StringVar(&gres, "gres", "", "`GRES` of a shard, such as gpu:1")
		fs.StringVar(&l.Account, "account", "", "`ACCOUNT` that pays")
		fs.StringVar(&l.Constraint, "constraint", "", "`FEATURES` that nodes must have")
		fs.StringArrayVar(&l.Options, "sbatch", nil, "any other `OPTION` of sbatch, such as --sbatch=--qos=high; repeatable")
		fs.BoolVar(&f.copy, "copy", false, "run a copy of this binary that lies beside the shards")
	})
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, args []string) error {
		s, dir, err := f.submission(ctx, p, cmd, args)
		if err != nil {
			return err
		}
		for _, o := range l.Options {
			if err := cluster.CheckOption(o); err != nil {
				return misused(cmd, err)
			}
		}
		if l.Time, err = cluster.SlurmTime(f.time); err != nil {
			return misused(cmd, err)
		}
		if f.groups == nil {
			s.Groups[0].Request = gres
		}
		if s.Program, err = os.Executable(); err != nil {
			return err
		}
		if f.copy {
			s.Program = filepath.Join(s.Dir, "bin", "rnnbench")
		}
		l.Shared, s.Slurm = f.shared, l
		return f.submit(p, cmd, s, dir)
	})
}

func submitKubernetes(p *program) *cobra.Command {
	f, k, binary := &submitFlags{}, &cluster.Kubernetes{}, "rnnbench"
	cmd := &cobra.Command{
		Use:   "kubernetes [flags] -- COMMAND...",
		Short: "Submit shards as a Kubernetes Indexed Job",
		Long: `Submit shards as a Kubernetes Indexed Job by kubectl, and a Job that merges them. All pods
mount the volume of --claim at ` + cluster.Mount + `, so many nodes must be able to write it at once. The
image must hold rnnbench of this version. Without --limit, a shard shares its node with no
other shard.`,
		Example: `  rnnbench submit kubernetes --shards 16 --image registry.example/rnnbench:1 --claim results --dry-run -- sweep --preset quick
  rnnbench submit kubernetes --shards 8 --image registry.example/rnnbench:1 --storage 1Gi --limit nvidia.com/gpu=1 -- tune -H 512 --device cuda:0
  rnnbench submit kubernetes --group h100=8:nvidia.com/gpu.product=H100 --limit nvidia.com/gpu=1 --image registry.example/rnnbench:1 --claim results -- sweep -H 512 --device cuda:0`,
		Args:              submitArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.flags(cmd, "NAME=SHARDS:LABEL=VALUE")
	addGroup(cmd, "Kubernetes", func(fs *pflag.FlagSet) {
		fs.StringVar(&k.Image, "image", "", "`IMAGE` that holds rnnbench")
		fs.StringVar(&binary, "program", binary, "`PATH` of rnnbench in the image")
		fs.StringVar(&k.Namespace, "namespace", "", "`NAMESPACE` of the jobs")
		fs.StringVar(&k.Claim, "claim", "", "`NAME` of the PersistentVolumeClaim for the results")
		fs.StringVar(&k.Storage, "storage", "", "create the claim with this `SIZE`, such as 1Gi")
		fs.StringArrayVar(&k.Limits, "limit", nil, "`RESOURCE=AMOUNT` of a shard, such as nvidia.com/gpu=1; repeatable")
		fs.StringArrayVar(&k.Selectors, "node-selector", nil, "`LABEL=VALUE` that nodes must have; repeatable")
	})
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, args []string) error {
		s, dir, err := f.submission(ctx, p, cmd, args)
		if err != nil {
			return err
		}
		s.Program = binary
		if err := k.Check(s); err != nil {
			return misused(cmd, err)
		}
		if k.Seconds, err = cluster.Seconds(f.time); err != nil {
			return misused(cmd, err)
		}
		s.Dir, s.Work = path.Join(cluster.Mount, s.Name), ""
		k.Shared, s.Kubernetes = f.shared, k
		return f.submit(p, cmd, s, dir)
	})
}
