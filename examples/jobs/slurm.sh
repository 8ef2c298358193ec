#!/bin/bash
# Slurm: one rank a socket, requeued until done. Submit from the folder that holds the configuration: sbatch slurm.sh
# Written after the manual of Slurm, and not run under it yet: try it with a short limit first.
#SBATCH --job-name=tutti
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=16
#SBATCH --time=02:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
# Two minutes before the limit the ranks get SIGUSR1: they write a checkpoint and exit with 75.
#SBATCH --signal=USR1@120

export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# --mpi=pmix where Slurm has it (srun --mpi=list); otherwise start the ranks with mpirun. The signal above reaches the ranks of srun alone, so it
# has to go to this script then (#SBATCH --signal=B:USR1@120), which hands it to mpirun. These lines stand for the next three:
#   mpirun --map-by ppr:1:socket:PE=16 tutti train ... & job=$!
#   trap 'kill -USR1 $job' USR1
#   wait $job; code=$?
#   if [ $code -gt 128 ]; then wait $job; code=$?; fi # the signal has ended the first wait
srun --mpi=pmix --cpus-per-task="$SLURM_CPUS_PER_TASK" --cpu-bind=cores --kill-on-bad-exit=1 \
  tutti train cifar10_resnet44_24epochs.toml --data-dir "$HOME/data/cifar10" --output-dir "runs/$SLURM_JOB_ID" --resume
code=$?
if [ $code -eq 75 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit $code
