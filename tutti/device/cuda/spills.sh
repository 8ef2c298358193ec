#!/usr/bin/env bash
# spills.sh FILE...: no kernel that these reports of ptxas's name keeps registers in memory, and they name kernels at all.
set -euo pipefail
text=$(cat "$@")
count=$(grep -c 'bytes spill stores' <<<"$text") || true
spilled=$(grep -B1 'bytes spill stores' <<<"$text" | grep -B1 -E '[1-9][0-9]* bytes spill' || true)
echo "$count kernels${spilled:+; with spills:}"
[ -z "$spilled" ] || echo "$spilled"
[ "$count" -gt 0 ] && [ -z "$spilled" ]
