#!/bin/bash
# matrix_test.sh LAUNCHER PROGRAM...: the acceptance test's matrix on 4 processes: model parts 1, 2, 4 x distributed update x user buffers, and
# a line with Test instead of Wait. LAUNCHER is one word list, for example "mpirun -n 4". With QUANT_LIB set: quantised gradients instead.
set -u
read -ra launcher <<<"$1"
shift
failed=0

# run ARGUMENT...: one program run, whose output ends in PASSED and in `exited normally` of all four
run() {
  local output
  output=$("${launcher[@]}" "${program[@]}" "$@" 2>&1)
  local code=$?
  if [ $code -eq 0 ] && grep -q 'PASSED$' <<<"$output" && [ "$(grep -c 'exited normally' <<<"$output")" -eq 4 ]; then
    echo "passed: $*"
  else
    echo "FAILED: $* (exit code $code)"
    echo "$output" | tail -n 20
    failed=1
  fi
}

program=("$@")
if [ -n "${QUANT_LIB:-}" ]; then
  for parts in 1 2; do
    for update in 0 1; do run $parts $update 0 0 "$QUANT_LIB"; done
  done
else
  for parts in 1 2 4; do
    for update in 0 1; do
      for user in 0 1; do run $parts $update $user; done
    done
  done
  run 2 1 0 1
fi
exit $failed
