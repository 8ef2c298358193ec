#!/usr/bin/env bash
# recover.sh RANKS LEFT COMMAND...: runs COMMAND FOLDER, with {} for the folder, and expects that as many ranks as LEFT have gone on to the
# end. The exit status of the launcher counts only where no rank was lost: with one that hangs it ends the job when the first of the
# others ends, and says so.
set -u
ranks=$1 left=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${@//\{\}/$folder}"
status=$?
for kind in saved done; do
  n=$(find "$folder" -name "$kind.*" -size +0 | wc -l)
  [ "$n" -eq "$left" ] || { echo "recover: $n of $left files '$kind'" >&2 && exit 1; }
done
[ "$left" -lt "$ranks" ] || exit $status
