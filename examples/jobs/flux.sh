#!/bin/bash
# Flux: two nodes, two ranks each, 16 cores a rank, submitted again until done. Submit from the folder that holds the configuration: flux batch flux.sh
# Written after the manual of Flux, and not run under it yet: try it with a short limit first.
#flux: -N 2
#flux: -n 4
#flux: -c 16
#flux: -t 2h

export OMP_NUM_THREADS=16
# The training has a limit of its own, five minutes before the job's. Two minutes before it Flux sends SIGUSR1 to the ranks: they write a
# checkpoint and exit with 75, which flux run returns.
flux run -N 2 -n 4 -c 16 -t 115m --signal=USR1@2m -o cpu-affinity=per-task \
  tutti train cifar10_resnet44_24epochs.toml --data-dir "$HOME/data/cifar10" --output-dir runs/flux --resume
code=$?
# --parent: this script runs in a Flux instance of the job's own; the next job belongs to the one above it.
if [ $code -eq 75 ]; then flux --parent batch flux.sh; fi
exit $code
