#!/bin/bash
# launch_test.sh PROGRAM CASE FOLDER: one case of README.md's table. Prints what went wrong and exits 1.
set -u
tutti=$1 case=$2 folder=$3
runs=$(cd "$(dirname "$0")/../training" && pwd)
config=$runs/tiny.toml
# shellcheck source-path=SCRIPTDIR/../training
. "$runs/runs.sh"
export LAUNCH_TEST_MARK=$folder/$$ # tells the processes of this test from others

# once NAME TEXT: the text stands on one line, and no banner of a launcher anywhere
once() {
  [ "$(grep -Ec "$2" "$1.log")" -eq 1 ] || fail "$1.log does not say once: $2"
  ! grep -Eq -- '----------|MPI_ABORT|ORTE|PMIX|Primary job|exited on signal' "$1.log" || fail "$1.log has banners"
}

# Processes of this test that are the program, or a launcher; not shells.
processes() {
  local found=() p comm
  for p in $(grep -lszxF "LAUNCH_TEST_MARK=$LAUNCH_TEST_MARK" /proc/[0-9]*/environ); do
    p=${p%/environ}
    read -r comm 2>/dev/null <"$p/comm" || continue
    case $comm in tutti* | mpirun* | prterun* | orted | hydra*) found+=("${p#/proc/}") ;; esac
  done
  echo "${found[@]}"
}

# wait_until WHAT...: the command WHAT succeeds, within five minutes, however busy the machine is
wait_until() {
  for _ in $(seq 6000); do
    "$@" && return
    sleep 0.05
  done
  return 1
}
none_left() { [ -z "$(processes)" ]; }
has() { [ -e "$1" ]; }
# Whether `tutti train` of that process number, started with SIGPIPE's default, has begun its main(): it ignores SIGPIPE.
begun() { (((0x0$(awk '/^SigIgn:/ {print $2}' "/proc/$1/status" 2>/dev/null) >> 12) & 1)); }
ranks_of() { pgrep -P "$(pgrep -P "$1")"; } # of the process that runs `tutti --ranks`

case $case in
  voice)
    expect 2 one --set batch.global=7 --set batch.local=0
    expect 2 two --set batch.global=7 --set batch.local=0 --ranks 2
    once two 'batch.global = 7 does not divide'
    expect 1 data --set data.dataset=cifar10 --data-dir absent --ranks 2
    once data '^tutti: .*absent'
    expect 3 missed --max-steps 1 --target 1 --ranks 2
    once missed 'the target was'
    expect 0 done --max-steps 1 --ranks 2
    expect 2 many --ranks 1000
    says many '^tutti: --ranks 1000 on .*add --oversubscribe'
    [ ! -e many ] || fail "1000 ranks have written something"
    "$tutti" study "$config" --ranks 1,1000 --mode strong --replicas 1000 --output-dir crowd >crowd.log 2>&1
    [ $? -eq 2 ] || fail "a study of 1000 ranks was accepted"
    says crowd '^tutti: --ranks 1000 on .*add --oversubscribe'
    [ ! -e crowd ] || fail "a study that cannot end has begun"
    "$tutti" study "$config" --ranks 1,1000 --mode strong --replicas 1000 --oversubscribe --dry-run >dry.log 2>&1 || fail "study --oversubscribe"
    says dry 'train .*--ranks 1000 .*--oversubscribe'
    # Whoever started this ignores SIGCHLD: then the system keeps no exit codes.
    for verb in train 'study --mode strong --repeats 1'; do
      # shellcheck disable=SC2086
      python3 -c 'import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])' \
        "$tutti" $verb "$config" --ranks 2 --max-steps 1 --output-dir "nochild-${verb%% *}" >nochild.log 2>&1 || fail "$verb without SIGCHLD"
    done
    ;;
  signals)
    train whole --ranks 2 || fail "the whole run"
    for signal in INT TERM HUP; do
      for delay in $([ $signal = INT ] && echo 0 0.05 0.1 0.2 0.3 0.5 0.8 || echo 0 0.1 0.5); do
        name=$signal-$delay
        # An interactive shell's: in the background a shell ignores SIGINT, and its children inherit that.
        python3 -c 'import os, signal, sys; [signal.signal(s, signal.SIG_DFL) for s in (signal.SIGINT, signal.SIGPIPE)]; os.execv(sys.argv[1], sys.argv[1:])' \
          "$tutti" train "$config" --output-dir "$name" --ranks 2 --epochs 500 >"$name.log" 2>&1 &
        job=$!
        wait_until grep -qs tutti "/proc/$job/comm" || fail "$name did not start"
        sleep $delay
        # Before main's first line a signal means what the system says, or a library: UCX catches SIGHUP from its loading on.
        [ $signal != HUP ] || wait_until begun $job
        early=0
        begun $job || early=1
        kill -$signal $job
        for _ in $(seq 6000); do kill -0 $job 2>/dev/null || break; sleep 0.05; done
        kill -0 $job 2>/dev/null && fail "$name hangs"
        wait $job
        code=$?
        [ $code -eq 75 ] || { [ $early = 1 ] && [ $code -gt 128 ]; } || fail "$name: exit code $code"
        [ $code -ne 75 ] || once $name 'stopped by signal'
        wait_until none_left || fail "$name left $(processes)"
      done
    done
    ;;
  killed)
    for victim in rank launcher; do
      "$tutti" train "$config" --output-dir $victim --ranks 2 --epochs 500 --set checkpoint.every_steps=2 >$victim.log 2>&1 &
      job=$!
      wait_until has $victim/checkpoints/step_0000002 || fail "no checkpoint"
      launcher=$(pgrep -P $job)
      if [ $victim = rank ]; then kill -KILL "$(ranks_of $job | tail -n 1)"; else kill -KILL "$launcher"; fi
      wait $job
      code=$?
      [ $code -eq 1 ] || fail "$victim: exit code $code"
      wait_until none_left || fail "$victim left $(processes)"
    done
    once rank 'rank [01]/2 \(process [0-9]+\).*killed by signal 9'
    compgen -G "${TMPDIR:-/tmp}/ompi.*/pid.$launcher" >/dev/null || compgen -G "${TMPDIR:-/tmp}/prterun.*.$launcher.*" >/dev/null && fail "Open MPI's folder of the killed mpirun is left"
    once launcher 'mpi[a-z]* \(process [0-9]+\) was killed by signal 9'
    ;;
  ending)
    # One rank fails when the other is in MPI_Finalize. $END_FAULT_LIBRARY brings that about; see end_fault.cpp.
    for fault in abort kill; do
      export END_FAULT=$fault
      LD_PRELOAD=$END_FAULT_LIBRARY expect 1 ranks-$fault --max-steps 1 --ranks 2
      once ranks-$fault '^tutti: rank 1/2 \(process [0-9]+\): (gone without a word|killed by signal 9)'
      mpirun --allow-run-as-root -n 2 env LD_PRELOAD="$END_FAULT_LIBRARY" \
        "$tutti" train "$config" --output-dir mpirun-$fault --max-steps 1 >mpirun-$fault.log 2>&1
      code=$?
      [ $code -eq 1 ] || [ $code -eq 137 ] || fail "mpirun-$fault: exit code $code"
      wait_until none_left || fail "$fault left $(processes)"
    done
    ;;
  stopped)
    "$tutti" train "$config" --output-dir run --ranks 2 --epochs 500 --set checkpoint.every_steps=2 --set comm.timeout_s="$(patient 2)" >run.log 2>&1 &
    job=$!
    wait_until has run/checkpoints/step_0000002 || fail "no checkpoint"
    # shellcheck disable=SC2046
    kill -STOP $(ranks_of $job)
    wait $job
    code=$?
    [ $code -eq 1 ] || fail "exit code $code"
    wait_until none_left || fail "left $(processes)"
    once run 'stopped by a signal \(state T\).*rank 0/2.*rank 1/2'
    ;;
  suspended)
    # Ctrl-Z and fg: a job in a group of its own, as an interactive shell makes it.
    timeout=$(patient 3)
    set -m
    "$tutti" train "$config" --output-dir run --ranks 2 --epochs 100000 --set checkpoint.every_steps=2 --set comm.timeout_s="$timeout" >run.log 2>&1 &
    job=$!
    set +m
    wait_until has run/checkpoints/step_0000002 || fail "no checkpoint"
    all_are() {
      local p
      for p in $(processes); do grep -Eq "^State:[[:space:]]+$1" "/proc/$p/status" || return 1; done
    }
    kill -TSTP $job
    wait_until all_are T || fail "some go on: $(processes)"
    sleep "$timeout" "$timeout" # no rank may think that it has waited for longer than comm.timeout_s
    lines=$(wc -l <run/record.jsonl)
    kill -CONT $job
    goes_on() { [ "$(wc -l <run/record.jsonl)" -gt $((lines + 20)) ]; }
    wait_until goes_on || fail "the job does not go on"
    kill -TERM $job
    wait $job
    code=$?
    [ $code -eq 75 ] || fail "exit code $code"
    wait_until none_left || fail "left $(processes)"
    ;;
  sizes)
    # As srun --mpi=none does. Open MPI 4 would end the process with twenty lines.
    SLURM_JOBID=1 SLURM_STEPID=0 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_NTASKS_PER_NODE=2 train slurm
    [ $? -eq 2 ] || fail "srun without MPI's knowledge was accepted"
    once slurm 'srun says that this process is rank 0 of 2, but .* says rank 0 of 1: .*--mpi='
    PMI_RANK=1 PMI_SIZE=2 train pmi
    [ $? -eq 2 ] || fail "another MPI's launcher was accepted"
    says pmi 'mpich says that this process is rank 1 of 2, but .* says rank 0 of 1: .*another MPI'
    [ ! -e slurm ] && [ ! -e pmi ] || fail "something was written"
    ;;
  start)
    # Rank 1 never becomes a rank of MPI. However short comm.timeout_s is, the start has a minute.
    # shellcheck disable=SC2016
    mpirun --allow-run-as-root -n 2 sh -c '[ "$OMPI_COMM_WORLD_RANK" = 1 ] && exec sleep 600; exec "$@"' - \
      "$tutti" train "$config" --output-dir start --set comm.timeout_s="$(patient 1)" >start.log 2>&1
    [ $? -eq 1 ] || fail "not 1"
    says start '^tutti: rank 0/2 on .*: starting MPI \(MPI_Init\): no answer within 60 s'
    [ ! -e start ] || fail "something was written"
    ;;
  agree)
    # Rank 1 gets another value; --ranks hands arguments on, so the launcher is called here, and told what --ranks would tell it.
    export OMPI_MCA_btl_tcp_if_include=lo
    for key in OPTIMIZER_LR=0.04 RUN_SEED=7 RUN_EPOCHS=2 BATCH_LOCAL=4; do
      name=${key%=*}
      mpirun --allow-run-as-root -n 2 sh -c \
        "[ \$OMPI_COMM_WORLD_RANK = 0 ] || export TUTTI_$key; exec '$tutti' train '$config' --output-dir '$name'" >"$name.log" 2>&1
      code=$?
      [ $code -eq 2 ] || fail "another $name on rank 1: exit code $code"
      says "$name" "$(tr A-Z a-z <<<"${name%%_*}").$(tr A-Z a-z <<<"${name#*_}")"
      [ "$(grep -c '^tutti: ' "$name.log")" -eq 1 ] || fail "$name is not said once"
      [ ! -e "$name" ] || fail "something was written"
    done
    ;;
  streams)
    for how in '>/dev/full' '>&-'; do
      for verb in 'model list' 'help --man' 'config --doc'; do
        eval "'$tutti' $verb $how 2>out.log"
        [ $? -eq 1 ] || fail "$verb $how: not 1"
        says out '^tutti: cannot write to the standard output'
        if [ "$how" = '>/dev/full' ]; then says out 'free some space'; else ! grep -q space out.log || fail "$verb: $(cat out.log)"; fi
      done
    done
    # A pipe that its reader has closed: the same quiet end of all.
    exec 9> >(exit 0)
    wait $!
    train collected/run --max-steps 1 || fail "cannot train"
    for verb in 'model list' 'config --doc' "train $config --output-dir dry --dry-run" 'study --collect --output-dir collected'; do
      # shellcheck disable=SC2086
      "$tutti" $verb >&9 2>out.log
      code=$?
      [ $code -eq 141 ] || fail "$verb into a closed pipe: $code, expected 141"
      ! grep -q 'tutti:' out.log || fail "$verb says $(cat out.log)"
    done
    exec 9>&-
    [ -s collected/report.html ] || fail "no report, because nobody read the table"
    for ranks in 1 2; do
      ("$tutti" train "$config" --output-dir pipe$ranks --ranks $ranks 2>&1; echo $? >code) | head -n 1 >/dev/null
      [ "$(cat code)" -eq 0 ] || fail "a closed pipe ended the run on $ranks rank(s): $(cat code)"
      [ -e pipe$ranks/checkpoints/step_0000024 ] || fail "the run on $ranks rank(s) did not reach its end"
    done
    ;;
  teams)
    OMP_THREAD_LIMIT=1 train limited --threads 2
    [ $? -eq 1 ] || fail "a team that is too small was accepted"
    says limited 'a team of 2 threads and gives 1 \(its limit is 1\)'
    OMP_MAX_ACTIVE_LEVELS=0 train flat --threads 2
    [ $? -eq 1 ] || fail "a team of one level was accepted"
    says flat 'OMP_MAX_ACTIVE_LEVELS=0 allows no team: unset it'
    OMP_NUM_THREADS=1000000000 train crowd --threads 0 --max-steps 1
    [ $? -eq 0 ] || fail "a thousand million threads"
    says crowd 'OMP_NUM_THREADS=1000000000 on .* is more than 8 threads a core.*: [0-9]+ are used'
    OMP_DYNAMIC=true train dynamic --threads 2 --max-steps 2 || fail "OMP_DYNAMIC"
    # OpenMP binds the first thread before main. What the process may use is what it was started with.
    doctor() { env -u OMP_NUM_THREADS "$@" doctor --no-measure; }
    facts() { doctor "$@" | grep -E '^(affinity|threads a rank)'; }
    all=$(facts "$tutti")
    grep -q '^affinity' <<<"$all" || fail "doctor says nothing of affinity"
    one=$(facts taskset -c "$(taskset -cp $$ | grep -o '[0-9]*$')" "$tutti")
    grep -q '^affinity.* (1 core' <<<"$one" || fail "a real binding: $one"
    for variable in OMP_PROC_BIND=true OMP_PROC_BIND=spread OMP_PLACES=cores "GOMP_CPU_AFFINITY=0-$(($(getconf _NPROCESSORS_CONF) - 1))"; do
      [ "$(facts "$variable" "$tutti")" = "$all" ] || fail "with $variable: $(facts "$variable" "$tutti")"
    done
    [ "$(OMP_PROC_BIND=true facts taskset -c "$(taskset -cp $$ | grep -o '[0-9]*$')" "$tutti")" = "$one" ] || fail "OMP_PROC_BIND beside taskset"
    # Where all threads of a team would share a core, one is enough, and the variable is named.
    OMP_PROC_BIND=master facts "$tutti" | grep -q '^threads a rank *1 ' || fail "a team on one core"
    [ "$(nproc)" = 1 ] || OMP_PROC_BIND=master doctor "$tutti" | grep -q 'OMP_PROC_BIND=master lets compute threads run on 1 of' || fail "the variable is not named"
    train plain --ranks 2 --max-steps 1 && OMP_PROC_BIND=true train bound --ranks 2 --max-steps 1 || fail "two ranks"
    says plain 'starting 2 ranks.*core'
    [ "$(grep -o 'starting 2 ranks.*core' bound.log)" = "$(grep -o 'starting 2 ranks.*core' plain.log)" ] || fail "ranks of a bound process: $(cat bound.log)"
    ;;
  *)
    fail "no case $case"
    ;;
esac

