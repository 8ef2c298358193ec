#!/usr/bin/env bash
# whole_lines.sh LAUNCHER... -- PROGRAM...: runs LAUNCHER PROGRAM, prints what the ranks wrote, after what the launcher said, and ends with its
# exit status. The ranks write into a file: Open MPI 5 forwards what they write in pieces of 128 bytes, which cuts lines of several ranks
# into each other.
set -u
launcher=()
while [[ $1 != -- ]]; do
  launcher+=("$1")
  shift
done
shift
lines=$(mktemp)
"${launcher[@]}" bash -c 'exec "$@" >>"$0" 2>&1' "$lines" "$@"
status=$?
cat "$lines"
rm -f "$lines"
exit "$status"
