#!/usr/bin/env bash
# scripts.sh ROOT: every shell script below ROOT can be parsed. A tool that is given the wrong file may spoil one that only a long test reads.
# And the scripts of benchmarks/ that look at what they are given say what is wrong with it without a traceback, and end with a code.
set -euo pipefail
cd "$1"
status=0
while IFS= read -r file; do
  bash -n "$file" || status=1
done < <(find . -name '*.sh' -not -path './build*' -not -path './runs/*')
if command -v python3 >/dev/null; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  while IFS= read -r script; do
    said=$(cd "$folder" && python3 "$script" none.npy picture.png 2>&1 </dev/null) && said+="Traceback: none, but it ends with 0"
    [[ $said != *Traceback* ]] || { echo "$script: $said" && status=1; }
  done < <(grep -lE '^(import|from) one_line' "$PWD"/benchmarks/* "$PWD"/benchmarks/baselines/* 2>/dev/null)
  said=$(PYTHONPATH=benchmarks python3 -c 'import one_line, json; json.loads("no JSON")' 2>&1) && status=1
  [[ $said == *'should be JSON'* && $said != *$'\n'* ]] || { echo "one_line.py: $said" && status=1; }
fi
exit "$status"
