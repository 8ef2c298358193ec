#!/bin/bash
# LSF: two nodes, two ranks each, 16 threads a rank, requeued until done. Submit from the folder that holds the configuration: bsub < lsf.sh
# Written after the manual of LSF, and not run under it yet: try it with a short limit first.
#BSUB -J tutti
#BSUB -n 64
#BSUB -R "span[ptile=32]"
#BSUB -W 2:00
#BSUB -wa USR1 -wt 2
#BSUB -Q 75
# Two minutes before the limit LSF sends SIGUSR1; mpirun hands it to the ranks: they write a checkpoint and exit with 75. -Q puts a job that
# ends with 75 back into the queue, under the same number.

trap : USR1 # LSF signals this shell too; without a trap the shell would die of it
export OMP_NUM_THREADS=16
mpirun -n 4 --map-by ppr:1:socket:PE=16 --bind-to core \
  tutti train cifar10_resnet44_24epochs.toml --data-dir "$HOME/data/cifar10" --output-dir "runs/$LSB_JOBID" --resume
code=$?
exit $code
