#!/usr/bin/env bash
# The main job as a SLURM job: it holds the scheduler and submits the workers' jobs
# itself, as deploy/slurm/cluster.yaml says. Arguments are those of `dsel select`.
#SBATCH --job-name=dsel
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

# Requeued or submitted again, the same command goes on with what is missing.
exec dsel select "$@" --scheduler deploy/slurm/cluster.yaml
