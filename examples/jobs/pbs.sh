#!/bin/bash
# PBS Pro / OpenPBS: two nodes, two ranks each, 16 threads a rank, submitted again until done. Submit with: qsub pbs.sh
# Written after the manual of PBS, and not run under it yet: try it with a short limit first.
#PBS -N tutti
#PBS -l select=2:ncpus=32:mpiprocs=2:ompthreads=16
#PBS -l walltime=02:00:00
#PBS -j oe

cd "$PBS_O_WORKDIR" || exit 1
# PBS ends a job with SIGTERM to every process, on which mpirun kills its ranks. So the job stops itself five minutes before the limit:
# mpirun hands SIGUSR1 to the ranks, they write a checkpoint and exit with 75.
timeout --preserve-status --signal=USR1 115m \
  mpirun -n 4 --hostfile "$PBS_NODEFILE" --map-by ppr:1:socket:PE=16 --bind-to core \
  tutti train cifar10_resnet44_24epochs.toml --data-dir "$HOME/data/cifar10" --output-dir runs/pbs --resume
code=$?
if [ $code -eq 75 ]; then qsub "$PBS_O_WORKDIR/pbs.sh"; fi
exit $code
