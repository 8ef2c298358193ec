#!/bin/bash
# Flux: two nodes, two ranks each, 16 cores a rank. Submit with: flux batch flux.sh
#flux: -N 2
#flux: -n 4
#flux: -c 16
#flux: -t 2h

export OMP_NUM_THREADS=16
flux run -N 2 -n 4 -c 16 -o cpu-affinity=per-task \
  tutti train cifar10_resnet44_24epochs.toml --data-dir "$HOME/data/cifar10" --output-dir runs/flux --resume
