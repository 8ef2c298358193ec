#!/bin/bash
# matrix_test.sh interface|quick|long LAUNCHER PROGRAM...: the acceptance test over processes x model parts x distributed update x user buffers x Test or
# Wait; quick: a line for each value, and for most pairs of values; interface: for each value, of another language on what quick tests. LAUNCHER is one word list that the number of processes follows, for example
# "mpirun -n". With QUANT_LIB set: quantised gradients. With MLSL_STATS=1 the table has to have been written too.
set -u
extent=$1
read -ra launcher <<<"$2"
shift 2
program=("$@")
passed=0
failed=0

# run PROCESSES ARGUMENT...: one program run, whose output ends in PASSED and in `exited normally` of all processes
run() {
  local processes=$1 output code
  shift
  rm -f mlsl_stats.log
  output=$("${launcher[@]}" "$processes" "${program[@]}" "$@" ${QUANT_LIB:+"$QUANT_LIB"} 2>&1)
  code=$?
  if [ $code -eq 0 ] && grep -q 'PASSED$' <<<"$output" && [ "$(grep -o 'exited normally' <<<"$output" | wc -l)" -eq "$processes" ] && table "$processes" "$1"; then
    passed=$((passed + 1))
  else
    echo "FAILED: $processes processes, $* (exit code $code)"
    echo "$output" | tail -n 20
    failed=$((failed + 1))
  fi
}

# Whether statistics are there, where they were asked for: a gradient for each of the two layers, if it is exchanged at all.
table() {
  [ "${MLSL_STATS:-0}" = 0 ] && return 0
  local layers=2
  [ "$1" = "$2" ] && layers=0
  [ "$(grep -c ' GRAD ' mlsl_stats.log)" -eq $layers ] && grep -q '^total: ' mlsl_stats.log
}

if [ "$extent" = interface ]; then
  run 2 2 0 1 1
  run 4 1 1 1 0
  run 4 2 0 0 1
elif [ "$extent" = quick ]; then
  run 1 1 1 0 0
  run 2 2 0 1 1
  run 4 1 0 0 1
  run 4 1 1 1 0
  run 4 2 1 1 1
  run 4 4 0 0 0
else
  for processes in 1 2 4 8; do
    for parts in 1 2 4; do
      [ $((processes % parts)) -eq 0 ] || continue
      for update in 0 1; do
        for user in 0 1; do
          for test in 0 1; do run $processes $parts $update $user $test; done
        done
      done
    done
  done
fi
echo "$passed passed, $failed failed"
exit $((failed > 0))
