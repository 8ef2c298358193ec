# What tests of the program as a user runs it share; bash sources it. It wants $tutti (the program), $config (of the runs) and $folder,
# which becomes the empty working folder.
export TUTTI_CACHE_DIR=$folder/cache  # what is measured here is nobody else's business
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder" || exit 1

# patient SECONDS: so many of an idle machine on this one (tests/README.md); only what CTest starts is told how busy it is
patient() { "${PATIENCE:-echo}" "$1"; }
TUTTI_COMM_TIMEOUT_S=$(patient 60)  # what a rank waits for, or takes itself, lasts longer on a busy machine
export TUTTI_COMM_TIMEOUT_S

fail() {
  echo "FAILED: $*" >&2
  local log
  for log in ./*.log; do
    echo "--- $log"
    tail -n 15 "$log"
  done >&2
  # shellcheck disable=SC2046
  kill $(jobs -p) 2>/dev/null  # runs in the background
  exit 1
}

# train NAME FLAG...: a run into the folder NAME, its output behind what NAME.log holds
train() {
  local name=$1
  shift
  "$tutti" train "$config" --output-dir "$name" "$@" >>"$(basename "$name").log" 2>&1
}

# expect CODE NAME FLAG...: the same, with this exit code
expect() {
  local wanted=$1 name=$2
  shift
  train "$@"
  local code=$?
  [ $code -eq "$wanted" ] || fail "run $name: exit code $code, expected $wanted"
}

# exits CODE NAME WORD...: the program with these words ends with this code, its output alone in NAME.log
exits() {
  "$tutti" "${@:3}" >"$2.log" 2>&1
  local code=$?
  [ $code -eq "$1" ] || fail "tutti ${*:3}: exit code $code, expected $1"
}

# ends CODE JOB WHAT: a run in the background, with this exit code
ends() {
  wait "$2"
  local code=$?
  [ $code -eq "$1" ] || fail "exit code $code $3, expected $1"
}

# in_parts CUT END NAME FLAG...: a run that ends at step CUT and is resumed until step END
in_parts() {
  expect 0 "${@:3}" --max-steps "$1"
  expect 0 "${@:3}" --max-steps "$2" --resume
}

# says NAME REGEX: on one line, or on lines that the log has wrapped
says() {
  grep -Eq "$2" "$1.log" || tr -s ' \n' ' ' <"$1.log" | grep -Eq "$2" || fail "$1.log does not say: $2"
}
