#!/usr/bin/env bash
# spills.sh FOLDER: no kernel that FOLDER/*.ptxas name keeps registers in memory, and they name kernels at all.
set -euo pipefail
count=$(cat "$1"/*.ptxas | grep -c 'bytes spill stores') || true
spilled=$(grep -hB1 'bytes spill stores' "$1"/*.ptxas | grep -B1 -E '[1-9][0-9]* bytes spill' || true)
echo "$count kernels${spilled:+; with spills:}"
[ -z "$spilled" ] || echo "$spilled"
[ "$count" -gt 0 ] && [ -z "$spilled" ]
