#!/bin/sh
# Merge the shards into one run, or say which are missing.
#SBATCH --job-name=nightly-merge
#SBATCH --output=/shared/50%%/nightly/logs/merge.log
#SBATCH --open-mode=append
#SBATCH --chdir=/home/me
#SBATCH --partition=gpu
#SBATCH --account=me
#SBATCH --qos=high
#SBATCH --comment="a b"

code=0
'/shared/my bin/rnnbench' merge /shared/50%/nightly/a100 || code=$?
exit $code
