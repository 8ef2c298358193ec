#!/usr/bin/env bash
# no_orphans.sh PROGRAM FOLDER MPIRUN...: whatever dies, no process of the job is left and no shared memory. PROGRAM is multirank_test, MPIRUN...
# the launcher with its flags for 4 ranks; FOLDER gets a copy of PROGRAM under a name of its own, so that the job's processes are told from others.
# Tutti's segments have no names, so they go with the last process that maps them. Open MPI's are files in /dev/shm: it is mpirun that removes them, so when mpirun itself is killed they stay, whatever the program does; this script removes them then and says so.
set -u
folder=$2
mkdir -p "$folder"
name=orphan_$$
program=$folder/$name
cp "$1" "$program"
shift 2
mpirun=("$@")
failed=0

# Not those that have ended and whose status nobody has asked for: a container may have no process that does.
processes() { pgrep --runstates RSDTtI -x "$name" || [ $? -eq 1 ] || echo "unknown, pgrep fails"; }
# Files in shared memory that process $1 maps: those of the MPI library, whatever it calls them. And which of the files $* are there.
files_of() { awk '$6 ~ "^/dev/shm/" {print $6}' "/proc/$1/maps" | sort -u; }
left_of() { for file in "$@"; do [ ! -e "$file" ] || echo "$file"; done; }

# wait_until SECONDS WHAT...: whether the command WHAT succeeds in time.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $deadline ] || return 1
    sleep 0.1
  done
}
gone() { ! kill -0 "$1" 2>/dev/null; }
none_left() { [ -z "$(processes)" ]; }
exchanging() { grep -qs "all ranks are exchanging" "$folder/output"; }

fail() {
  echo "FAILED: $*"
  failed=1
}
# Inodes of Tutti's segments that process $1 maps, and whether any process maps one of them.
memory_of() { awk '/memfd:tutti/ {print $5}' "/proc/$1/maps" | sort -u; }
mapped() { awk -v wanted="$*" 'BEGIN {split(wanted, list, " "); for (i in list) inode[list[i]]} /memfd:tutti/ && $5 in inode {print FILENAME}' /proc/[0-9]*/maps 2>/dev/null | sort -u; }

# job WHAT TRANSPORT: starts a job that exchanges until it is ended, and ends it by WHAT.
job() {
  local left rank files memory
  rm -f "$folder/output"  # the last job's text is not this one's
  "${mpirun[@]}" "$program" endless "$2" >"$folder/output" 2>&1 &
  local launcher=$!
  disown
  wait_until 300 exchanging || fail "$1 $2: the job did not start: $(cat "$folder/output")"
  rank=$(processes | tail -n 1)
  files=$(files_of "$rank")
  memory=$(memory_of "$rank")
  [ -n "$memory" ] || fail "$1 $2: a rank that exchanges maps no memory of Tutti's: this test sees nothing"
  case $1 in
    rank) kill -9 "$rank" ;;
    stopped_rank) kill -STOP "$rank"; kill -TERM "$launcher" ;;
    launcher) kill -9 "$launcher" ;;
    launcher_and_stopped_rank) kill -STOP "$rank"; kill -9 "$launcher" ;;
  esac
  if ! wait_until 120 none_left; then
    left=$(processes)
    fail "$1 $2: processes left: $left"
    kill -9 $left
  fi
  # mpirun removes its files after the last rank has ended, so it is given the time.
  if ! wait_until 20 gone "$launcher"; then
    fail "$1 $2: mpirun goes on without its ranks"
    kill -9 "$launcher"
  fi
  left=$(mapped $memory)
  [ -z "$left" ] || fail "$1 $2: memory of the job is still mapped: $left"
  # shellcheck disable=SC2086
  left=$(left_of $files)
  if [ -n "$left" ] && [[ $1 == launcher* ]]; then
    echo "$1 $2: Open MPI's own segments outlive mpirun; removed"
    rm -f $left
  elif [ -n "$left" ]; then
    fail "$1 $2: left in /dev/shm: $left"
  fi
  echo "$1 $2: done"
}

for transport in shm mpi; do
  for what in rank stopped_rank launcher launcher_and_stopped_rank; do
    job $what $transport
  done
done
rm -f "$program"
exit $failed
