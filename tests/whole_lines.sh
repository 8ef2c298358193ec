#!/usr/bin/env bash
# whole_lines.sh LAUNCHER... -- PROGRAM...: runs LAUNCHER PROGRAM, prints what the ranks wrote, after what the launcher said, and ends with its
# exit status. The ranks write into a file: what a launcher forwards may be cut where lines of several ranks
# meet. A line stays whole where its program writes it by one call, which glibc's fprintf to stderr does for 128 bytes alone.
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
