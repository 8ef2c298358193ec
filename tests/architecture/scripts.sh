#!/usr/bin/env bash
# scripts.sh ROOT: every shell script below ROOT can be parsed. A tool that is given the wrong file may spoil one that only a long test reads.
set -euo pipefail
cd "$1"
status=0
while IFS= read -r file; do
  bash -n "$file" || status=1
done < <(find . -name '*.sh' -not -path './build*' -not -path './runs/*')
exit "$status"
