#!/bin/bash
# hosts_test.sh PROGRAM MATRIX CASE FOLDER: one case on two hosts (benchmarks/hosts). Prints what went wrong and exits 1; 77, with what is
# missing, where the machine cannot have such hosts.
set -u
tutti=$1 matrix=$2 case=$3 folder=$4
tests=$(cd "$(dirname "$0")/.." && pwd)
export TUTTI_CACHE_DIR=$folder/cache OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder" || exit 1

fail() {
  echo "FAILED: $*" >&2
  tail -n 15 ./*.log >&2
  exit 1
}

# hosts.log says what is missing.
skip_if_77() {
  [ "$1" -eq 77 ] || return 0
  cat hosts.log
  exit 77
}

# hosts FLAG... PROGRAM ARGUMENT...: its output in hosts.log
hosts() {
  "$tests/../benchmarks/hosts" "$@" >hosts.log 2>&1
  local code=$?
  skip_if_77 $code
  [ $code -eq 0 ] || fail "exit code $code of $*"
}

# start FLAG... PROGRAM ARGUMENT...: the same in the background, as process $job
start() {
  "$tests/../benchmarks/hosts" "$@" >hosts.log 2>&1 &
  job=$!
}

# wait_until WHAT...: the command WHAT succeeds, within five minutes, however busy the machine is
wait_until() {
  local i
  for ((i = 0; i < 250; ++i)); do
    "$@" && return
    sleep "$((i >= 8)).25"
  done
  return 1
}
ended() { ! kill -0 "$job" 2>/dev/null; }
trains_or_ended() { grep -Eq ' step [0-9]{2,}/' hosts.log || ended; }

# Waits until the job in the background trains.
trains() {
  wait_until trains_or_ended || { kill "$job"; fail "the job does not train"; }
  ended || return 0
  wait "$job"
  local code=$?
  skip_if_77 $code
  fail "the job ended with exit code $code before it trained"
}

# ends CODES: the job has come to its end, with one of these exit codes
ends() {
  wait_until ended || { kill "$job"; fail "the job hangs"; }
  wait "$job"
  local code=$?
  [[ " $1 " == *" $code "* ]] || fail "exit code $code, expected $1"
}
says() { grep -Eq "$1" hosts.log || fail "nothing says: $1"; }

# passed WHERE: the matrix did, between such ranks
passed() {
  grep -Eq "[0-9] rank\(s\), $1" hosts.log || fail "no ranks that are $1"
  grep -q 'cases passed$' hosts.log || fail "the matrix did not pass"
  tail -n 1 hosts.log
}

# processes HOST: of the running job's host, 0 or 1. Hosts are network namespaces; that of mpirun is host 0.
processes() {
  local all p first host
  all=$(descendants "$job")
  for p in $all; do [ "$(comm_of "$p")" != mpirun ] || first=$p; done
  for p in $all; do
    case $(comm_of "$p") in mpirun | orted | tutti*) ;; *) continue ;; esac
    host=1
    [ ! "/proc/$p/ns/net" -ef "/proc/$first/ns/net" ] || host=0
    [ "$1" != $host ] || echo "$p"
  done
}
comm_of() {
  local name
  { read -r name <"/proc/$1/comm"; } 2>/dev/null && echo "$name"
}
descendants() {
  ps -eo pid=,ppid= | awk -v root="$1" '{ children[$2] = children[$2] " " $1 }
    function walk(p,  n, i, of) { n = split(children[p], of, " "); for (i = 1; i <= n; i++) { print of[i]; walk(of[i]) } }
    END { walk(root) }'
}
ranks() { for p in $(processes "$1"); do ! grep -qs '^tutti' "/proc/$p/comm" || echo "$p"; done; }
no_ranks() { [ -z "$(ranks "$1")" ]; }

# patient SECONDS: so many of an idle machine on this one (tests/README.md)
patient() { "${PATIENCE:-echo}" "$1"; }
endless=("$tutti" train "$tests/training/tiny.toml" --output-dir run --epochs 5000 --replicas 4 --set comm.timeout_s="$(patient 5)")

case $case in
  matrix)
    for wire in mpi tcp; do
      hosts --rate 0 "$matrix" mpi --wire $wire --nodes hostname --ranks 2-4 --counts 0,1,2,3,127 --part 1/40
      passed "${wire^^} among 2 nodes"
    done
    ;;
  placements)
    # Shared memory inside the hosts: an uneven pair, ranks dealt like cards, and four hosts.
    for placement in "2 3,1 slot 10" "2 2 node 10" "4 2 slot 100"; do
      read -r number each by share <<<"$placement"
      hosts --rate 0 --hosts "$number" --per-host "$each" --by "$by" "$matrix" shm --nodes hostname --counts 0,1,2,3,127 --part "1/$share"
      passed "shared memory and .* among $number nodes"
    done
    ;;
  selection)
    # Above 16 KiB the built-in table says two_level between nodes. Open MPI has nothing but TCP between these hosts.
    for wire in auto:TCP mpi:MPI; do
      hosts --rate 0 "$tutti" bench comm -b 64K -e 64K -n 3 --check 1 --peers none --wire "${wire%:*}"
      grep -q "4 rank(s) on 2 node(s), shared memory and ${wire#*:};" hosts.log || fail "the ranks are not on two nodes, or not over ${wire#*:}"
      grep -Eq 'two_level .* 0$' hosts.log || fail "two_level was not chosen, or is wrong"
    done
    ;;
  train)
    "$tutti" train "$tests/training/tiny.toml" --output-dir one --replicas 4 --max-steps 6 >one.log 2>&1 || fail "one rank"
    for wire in tcp mpi; do
      hosts --rate 1gbit "$tutti" train "$tests/training/tiny.toml" --output-dir $wire --replicas 4 --max-steps 6 --set comm.wire=$wire
      for file in weights state; do
        cmp {one,$wire}/checkpoints/step_0000006/$file.safetensors || fail "$file differ between one rank and four on two hosts over $wire"
      done
    done
    ;;
  served)
    # A worker on one host and its server on the other are plain training; no gradient of groups, and none beside a slow worker, is lost or
    # applied twice between hosts, over either wire.
    plain=(train "$tests/training/tiny.toml" --set optimizer.momentum=0.9 --max-steps 6)
    "$tutti" "${plain[@]}" --output-dir one --replicas 1 >one.log 2>&1 || fail "one rank"
    for wire in tcp mpi; do
      hosts --per-host 1 --rate 1gbit "$tutti" "${plain[@]}" --output-dir $wire --replicas 1 --sync ps:async --set sync.server_ranks=1 --set comm.wire=$wire
      for file in weights state; do
        cmp {one,$wire}/checkpoints/step_0000006/$file.safetensors || fail "$file differ between plain training and a server on another host over $wire"
      done
      for scheme in groups:2 ps:async; do
        hosts --rate 1gbit "$tutti" "${plain[@]}" --output-dir $scheme-$wire --replicas 4 --sync $scheme --set sync.servers=3 --set comm.bucket_bytes=4096 \
          --slow 3:3 --set run.log_every=4 --set comm.wire=$wire
        updates=$(grep '"event":"servers"' $scheme-$wire/record.jsonl | tail -n 1 | grep -Eo '"version":[0-9]+' | cut -d: -f2)
        [ "$updates" = $([ $scheme = groups:2 ] && echo 12 || echo 24) ] || fail "6 steps of $scheme over $wire have $updates updates"
      done
    done
    ;;
  caches)
    # Each volume is read by one of the hosts, which gives it to the other; staged by host, each has links to what it does not train on.
    "$tutti" data generate cosmoflow volumes --side 32 --train 8 --test 4 --seed 5 >generate.log || fail "cannot generate volumes"
    config=$tests/training/volumes.toml
    "$tutti" train "$config" --data-dir volumes --output-dir one --replicas 4 >one.log 2>&1 || fail "one rank"
    hosts --rate 1gbit "$tutti" train "$config" --data-dir volumes --output-dir two --replicas 4 --set data.cache.memory=100MiB
    cmp {one,two}/checkpoints/step_0000006/weights.safetensors || fail "weights differ between files and other nodes' caches"
    says 'nodes exchange them'
    python3 - two/record.jsonl >counts.log 2>&1 <<'END' || fail "samples came from elsewhere"
import json, sys
lines = [dict(zip(event["levels"], event["samples"])) for event in map(json.loads, open(sys.argv[1])) if event["event"] == "data"]
print(lines)
# Who asks while the owner reads the sample makes it be read twice, so how many are read from files depends on the moment. That some came
# from the other host does not, nor that the last epoch needs neither.
sys.exit(not (sum(line["peers"] for line in lines) >= 4 and lines[-1]["files"] == lines[-1]["peers"] == 0))
END
    hosts --rate 1gbit bash -c "exec '$tutti' train '$config' --data-dir volumes --output-dir shard --replicas 4 --set data.shuffle=shard --set data.staging.dir=staged-\$(hostname)"
    says 'staged to .*: 12 of 12 files copied.*; 12 links to files of other nodes. shares'
    for host in 0 1; do
      [ "$(find staged-node$host -type l | wc -l)" = 6 ] || fail "host $host has other links than to 4 volumes and 2 that judge"
    done
    ;;
  silent)
    # The job's own mpirun would wait for the second host's daemon without end.
    start --rate 0 "${endless[@]}"
    trains
    # shellcheck disable=SC2046
    kill -STOP $(processes 1)
    ends "1 137"
    says 'not arrived: .*rank [23] on node1'
    says '^tutti: mpirun \(process [0-9]+\) still waits 15 s after the job.s end, so it is killed'
    ;;
  frozen)
    # mpirun's own host: what is stopped there cannot end, but the ranks elsewhere do, and when the host goes on the job is over at once.
    start --rate 0 "${endless[@]}"
    trains
    held=$(processes 0)
    # shellcheck disable=SC2086
    kill -STOP $held
    wait_until no_ranks 1 || fail "ranks of the other host wait without end"
    # shellcheck disable=SC2086
    kill -CONT $held
    ends "1 137"
    says 'not arrived: .*rank [01] on node0'
    ;;
  ranks)
    # --ranks inside an allocation of two hosts: its process sees the ranks of its own host alone.
    hosts --rate 0 --once yes "$tutti" train "$tests/training/tiny.toml" --output-dir done --ranks 4 --replicas 4 --max-steps 6
    start --rate 0 --once yes "${endless[@]}" --ranks 4
    trains
    kill -TERM "$(processes 0 | head -n 1)"
    ends 75
    says 'checkpoint'
    start --rate 0 --once yes "${endless[@]}" --ranks 4 --fresh
    trains
    # shellcheck disable=SC2046
    kill -STOP $(processes 1)
    ends 1
    says '^tutti: .*not arrived: .*rank [23] on node1'
    ;;
  *)
    fail "no case $case"
    ;;
esac
