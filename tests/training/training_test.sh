#!/bin/bash
# training_test.sh PROGRAM CASE FOLDER: one case of README.md's table. Prints what went wrong and exits 1.
set -u
tutti=$1 case=$2 folder=$3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR
. "$here/runs.sh"
. "$here/comparisons.sh"
# What they name lies in the folder of the case, so they do, too.
cp "$here"/*.toml . && configs=$PWD
config=$configs/tiny.toml
for cases in "$here"/cases_*.sh; do
  # shellcheck source=/dev/null
  . "$cases"
done

[ "$(type -t "case_$case")" = function ] || fail "no case $case"
"case_$case"
