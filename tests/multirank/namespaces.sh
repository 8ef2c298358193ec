#!/usr/bin/env bash
# namespaces.sh MPIEXEC -n RANKS -- PROGRAM...: runs PROGRAM with each rank in a process namespace of its own, as containers do: all ranks have
# the same process id. Ends with 1 where this user may make no such namespace; without a launcher it tells whether that is so.
set -eu
launcher=()
while [ "$1" != "--" ]; do
  launcher+=("$1")
  shift
done
shift
enter=(unshare --pid --fork --kill-child --mount-proc)
if ! "${enter[@]}" true 2>/dev/null; then
  enter=(unshare --user --map-root-user --pid --fork --kill-child --mount-proc)
  "${enter[@]}" true 2>/dev/null || { echo "no process namespaces for this user"; exit 1; }
fi
# Open MPI's own transport in shared memory takes equal process ids for one process, and crashes. What is tested is ours. The loopback
# is there on a machine without a network too, where Open MPI would not take it by itself.
export OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo
"${launcher[@]}" "${enter[@]}" "$@"
