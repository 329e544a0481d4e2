#!/bin/sh
# One shard of 12 of: rnnbench sweep --where 'mem<=8GiB' --label 'it'\''s $HOME'
#SBATCH --job-name=nightly-a100
#SBATCH --array=3,7-8
#SBATCH --output=/shared/50%%/nightly/logs/nightly-a100-%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:TERM@60
#SBATCH --chdir=/home/me
#SBATCH --exclusive
#SBATCH --partition=gpu
#SBATCH --time=02:00:00
#SBATCH --account=me
#SBATCH --constraint=a|b
#SBATCH --qos=high
#SBATCH --mem=8G
#SBATCH --comment="a b"

# exec replaces the shell, so that the scheduler's signals reach the program.
exec '/shared/my bin/rnnbench' sweep --where 'mem<=8GiB' --label 'it'\''s $HOME' --out /shared/50%/nightly/a100 --submitted-version v1.2.3 --submitted-device cuda-nvidia-h100 --shard "$SLURM_ARRAY_TASK_ID/12"
