#!/bin/bash
# hosts_test.sh PROGRAM MATRIX CASE FOLDER: one case on two hosts of two ranks (benchmarks/hosts). Prints what went wrong and exits 1; 77 where
# the machine cannot have such hosts.
set -u
tutti=$1 matrix=$2 case=$3 folder=$4
tests=$(cd "$(dirname "$0")/.." && pwd)
export TUTTI_CACHE_DIR=$folder/cache OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder" || exit 1

fail() {
  echo "FAILED: $*" >&2
  tail -n 15 ./*.log >&2
  exit 1
}

# hosts FLAG... PROGRAM ARGUMENT...: its output in hosts.log
hosts() {
  "$tests/../benchmarks/hosts" "$@" >hosts.log 2>&1
  local code=$?
  if [ $code -eq 77 ]; then
    cat hosts.log
    exit 77
  fi
  [ $code -eq 0 ] || fail "exit code $code of $*"
}

case $case in
  matrix)
    hosts --rate 0 "$matrix" mpi --nodes hostname --ranks 2-4 --counts 0,1,2,3,127 --part 1/20
    grep -q '4 rank(s), MPI among 2 nodes' hosts.log || fail "the ranks are not on two nodes"
    grep -q 'cases passed$' hosts.log || fail "the matrix did not pass"
    tail -n 1 hosts.log
    ;;
  selection)
    # Above 16 KiB, and only between nodes of equal size, the built-in table says two_level.
    hosts --rate 0 "$tutti" bench comm -b 64K -e 64K -n 3 --check 1 --peers none
    grep -q '4 rank(s) on 2 node(s), MPI' hosts.log || fail "the ranks are not on two nodes"
    grep -Eq 'two_level .* 0$' hosts.log || fail "two_level was not chosen, or is wrong"
    ;;
  train)
    "$tutti" train "$tests/training/tiny.toml" --output-dir one --replicas 4 --max-steps 6 >one.log 2>&1 || fail "one rank"
    hosts --rate 1gbit "$tutti" train "$tests/training/tiny.toml" --output-dir four --replicas 4 --max-steps 6
    for file in weights state; do
      cmp {one,four}/checkpoints/step_0000006/$file.safetensors || fail "$file differ between one rank and four on two hosts"
    done
    ;;
  *)
    fail "no case $case"
    ;;
esac
