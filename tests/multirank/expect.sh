#!/usr/bin/env bash
# expect.sh STATUS REGEX... -- COMMAND...: COMMAND ends with STATUS, and a line of its output matches each REGEX (extended). Prints the output.
set -u
status=$1
shift
patterns=()
while [ "$1" != "--" ]; do
  patterns+=("$1")
  shift
done
shift
output=$("$@" 2>&1)
ended=$?
printf '%s\n' "$output"
failed=0
if [ "$ended" -ne "$status" ]; then
  echo "FAILED: exit status $ended, expected $status"
  failed=1
fi
for pattern in "${patterns[@]}"; do
  if ! grep -Eq -- "$pattern" <<<"$output"; then
    echo "FAILED: no line matches: $pattern"
    failed=1
  fi
done
exit $failed
