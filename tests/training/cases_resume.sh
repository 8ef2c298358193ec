# Cases of training_test.sh. Runs that end and go on: resumes, deaths, signals, full disks.
# shellcheck shell=bash disable=SC2154

case_resume() {
  expect 0 whole --max-steps 13
  expect 0 parts --max-steps 3
  expect 0 parts --max-steps 10 --resume
  expect 0 parts --max-steps 13 --resume --ranks 2
  same whole parts 13
  # What a resume warns of is said once, not by each rank.
  expect 0 told --max-steps 2 --ranks 2
  rm told.log
  expect 0 told --max-steps 3 --ranks 2 --epochs 4 --threads 2 --set optimizer.lr=0.1 --resume-anyway optimizer.lr --resume -q
  for what in 'the schedule spans the run, run.epochs = 4 now' 'run.threads was 1 and is now 2' 'resumed although changed: optimizer.lr'; do
    [ "$(grep -c "$what" told.log)" = 1 ] || fail "not once: $what"
  done
  expect 2 parts --max-steps 14 --resume --replicas 3
  says parts 'run.replicas was 2 and is now 3; .*on any number of ranks from 1 to 2'
  # As many replicas as before, without being told.
  expect 0 many --max-steps 2 --ranks 3 --set run.replicas=0 --set batch.local=2
  expect 0 many --max-steps 4 --set run.replicas=0 --set batch.local=2 --resume
  says many '3 replica.* on 1 rank'
}

case_asked() {
  # What a process has chosen or been told for itself is not kept as if it were the run's.
  expect 0 run --ranks 2 --max-steps 2 -q --threads 0
  grep -Eq '^threads = 0 ' run/config.toml && grep -Eq '^log_level = "info" ' run/config.toml || fail "config.toml keeps threads or log level of the process"
  grep -v ' warning: ' run.log && fail "-q is not quiet"  # warnings stay: on an old processor, on one core
  "$tutti" train run/config.toml --resume --max-steps 3 >>run.log 2>&1 || fail "no resume"
  says run 'done: 3 steps'
  # What was asked for is kept.
  expect 0 told --max-steps 1 --threads 1
  grep -Eq '^threads = 1 ' told/config.toml || fail "config.toml does not keep the threads that were asked for"
}

case_limits() {
  # What has ended a run is what its command to go on names, and a resume that finds nothing to do says so.
  expect 0 run --max-steps 3
  says run 'go on: tutti train run/config.toml --resume --max-steps N [(]N above 3[)]'
  expect 0 run --epochs 5 --max-steps 3 --resume
  says run 'warning: nothing to do: 3 steps are done, and run.max_steps = 3 ends the run'
  expect 0 run --max-steps 0 --resume
  says run 'run/config.toml --resume --epochs N [(]N above 3[)]'
  rm run.log
  expect 0 run --epochs 2 --resume
  says run 'nothing to do: 24 steps are done, and run.epochs = 2 ends the run'
  says run 'toml --resume --epochs N [(]N above 3[)]'
  expect 3 run --epochs 2 --target 1 --resume -q
  says run 'done: nothing to do at step 24'
  grep -q '"status":"target_missed","reason":"nothing to do at step 24; accuracy [0-9.]* after 3.00 epochs, the target is 1' run/record.jsonl || fail "the record: $(tail -n 1 run/record.jsonl)"
  [ "$(grep -c 'warning: nothing to do' run.log)" = 2 ] || fail "nothing to do, and -q is silent about it"
  expect 0 reached --epochs 1 --target 0.001
  says reached 'toml --resume --target X [(]X above 0[.][0-9]*, or 0 for none[)]'
  # Where nothing is done, config.toml stays that of what was done.
  cp reached/config.toml before.toml
  rm reached/checkpoints/best  # as where a kill came right behind the checkpoint
  expect 0 reached --target 0.001 --epochs 2 --resume
  [ -e reached/checkpoints/best/manifest.json ] || fail "the best checkpoint is not marked again"
  cmp reached/config.toml before.toml || fail "a resume that did nothing has changed config.toml"
  ! grep -q '"changes":[[]"' reached/record.jsonl || fail "a resume that did nothing has changes in the record"
  # It stands where it stood, and so do its clocks, but for what two starts without a step take.
  last_clocks() { grep '"event":"run_stop"' reached/record.jsonl | tail -n "$1" | head -n 1 | sed -E 's/.*"wall_seconds":([0-9.e-]+),"train_seconds":([0-9.e-]+),"eval_seconds":([0-9.e-]+),"checkpoint_seconds":([0-9.e-]+).*/\1 \2 \3 \4/'; }
  echo "$(last_clocks 2) $(last_clocks 1)" | awk '{ exit !($5 >= $1 && $6 >= $2 && $7 == $3 && $8 == $4 && $3 > 0 && $4 > 0 && $6 - $2 <= $5 - $1 + 1e-6) }' ||
    fail "the clocks went from $(last_clocks 2) to $(last_clocks 1)"
}

case_changed() {
  # Nothing that changes results changes in silence, and everything has a way out.
  expect 0 run --max-steps 2
  for change in optimizer.lr=0.1 optimizer.weight_decay=0 optimizer.momentum=0.5 optimizer.nesterov=true optimizer.name=adamw schedule.name=constant 'data.transforms=["image: flip x, divide 255, normalise"]' \
    loss.label_smoothing=0.1 comm.reproducible=false run.seed=7 run.precision=bf16 data.generate_seed=5 data.generate_train=96 model.width=8; do
    rm -f run.log
    expect 2 run --resume --max-steps 3 --set "$change"
    says run "${change%=*} was .* and is now .*--resume-anyway ${change%=*}"
  done
  grep -q '^lr = 0.05' run/config.toml || fail "a refused resume changed the run's configuration"
  # The same names and sizes, other images.
  "$tutti" data generate lattices other --train 48 --test 8 --seed 9 >cut.log || fail "cannot generate"
  expect 2 run --resume --max-steps 3 --data-dir other
  says run 'data.content was'
  expect 0 run --resume --max-steps 3 --set loss.label_smoothing=0.1 --set optimizer.name=adamw --resume-anyway loss.label_smoothing --resume-anyway optimizer.name
  says run 'optimizer begins at zero'
  grep -q '"changes":\[.*loss.label_smoothing: 0.0 -> 0.1' run/record.jsonl || fail "the record does not say what changed"
  expect 2 run --resume --max-steps 4 --set loss.label_smoothing=0.1 --set optimizer.name=adamw --resume-anyway loss.smoothing
  # What may change: the end of the run, and how it is watched.
  expect 0 run --resume --max-steps 4 --set loss.label_smoothing=0.1 --set optimizer.name=adamw --set run.log_every=2 --set checkpoint.keep=5
}

case_full() {
  # A disk without room for a checkpoint: training goes on, the end is an error, the earlier ones stay. A limit on file sizes stands for it.
  size=$(stat -c %s "$tutti")
  wide=(--set model.width=16)  # its weights are by far the largest file
  expect 0 run "${wide[@]}" --max-steps 2
  [ "$size" -gt 0 ] || fail "no program"
  (ulimit -f 40; "$tutti" train "$config" "${wide[@]}" --output-dir run --resume --set checkpoint.every_steps=1 --max-steps 4 >>run.log 2>&1)
  [ $? -eq 1 ] || fail "a last checkpoint that cannot be written is no success"
  says run 'no checkpoint of step 3: .*weights.safetensors: cannot be written.*the last checkpoint, of step 2'
  tail -n 1 run/record.jsonl | grep -q '"status":"failed"' || fail "the record does not say that the run failed"
  expect 0 run "${wide[@]}" --resume --max-steps 4
  # Where no file can be opened, the folder cannot be listed either: that does not end the run in place of the warning.
  train starved --epochs 100000 --max-steps 100000 --set checkpoint.every_steps=20 --set run.eval_every=0 &
  job=$!
  wait_for starved/checkpoints/step_0000020 $job
  prlimit --pid "$(pgrep -P $job)" --nofile=3: || fail "the limit of open files could not be set"
  wait_for_lines starved $job 2 'no checkpoint of step'
  says starved 'no checkpoint of step .*cannot be listed: .*; training goes on'
  prlimit --pid "$(pgrep -P $job)" --nofile=256: || fail "the limit of open files could not be set"
  kill -TERM "$(pgrep -P $job)"
  wait $job
  [ $? -eq 75 ] || fail "a run that could not open files for a while does not go on"
}

case_full_parts() {
  # The same of ranks that only serve, of stages and of ranks that share layers, and the reason is the only one that is told. A small disk
  # of its own, where the system lets a user have one.
  unshare --user --map-root-user --mount true 2>/dev/null || {
    echo "skipped: no mount namespace for a small disk"
    exit 77
  }
  for i in $(seq 1 120); do echo "the quick brown fox number $((i % 3)) jumps over the lazy dog"; done >text.txt
  mkdir disk
  unshare --user --map-root-user --mount bash -c "$(declare -f small_disk says fail); $(declare -p tutti configs); small_disk" || fail "on a small disk"
}

# small_disk: in a mount namespace of its own
small_disk() {
  local kind kinds=("--ranks 3 --replicas 2 --sync ps:async --set sync.server_ranks=1" "--ranks 2 --replicas 1 --set parallel.pipeline=2 --set batch.accumulate=2"
    "--ranks 2 --replicas 1 --set parallel.tensor=2 --set model.heads=4")
  mount -t tmpfs -o size=12m tmpfs disk || fail "no small disk"
  for kind in "${kinds[@]}"; do
    rm -rf disk/* kind.log
    # shellcheck disable=SC2206
    local run=("$configs/language.toml" --set model.width=96 --set run.eval_every=0 --output-dir disk/run $kind)
    "$tutti" train "${run[@]}" --max-steps 1 >kind.log 2>&1 || fail "$kind"
    head -c $((($(df --output=avail -k disk | tail -n 1) - 200) << 10)) /dev/zero >disk/filler
    "$tutti" train "${run[@]}" --resume --set checkpoint.every_steps=1 --max-steps 3 >>kind.log 2>&1
    [ $? -eq 1 ] || fail "a last checkpoint that cannot be written is no success: $kind"
    says kind 'no checkpoint of step 2: .*safetensors: cannot be written: No space left.*the last checkpoint, of step 1'
    grep -q 'not arrived' kind.log && fail "ranks tell of each other, and not of the disk: $kind"
    rm disk/filler
    "$tutti" train "${run[@]}" --resume --max-steps 3 >>kind.log 2>&1 || fail "no way on from the checkpoint before: $kind"
  done
}

case_full_record() {
  # A disk that fills up while ranks train: the one that writes the record says so, and nobody else says anything.
  unshare --user --map-root-user --mount true 2>/dev/null || {
    echo "skipped: no mount namespace for a small disk"
    exit 77
  }
  mkdir disk
  unshare --user --map-root-user --mount bash -c "$(declare -f filling_disk says fail wait_for); $(declare -p tutti config); filling_disk" || fail "on a filling disk"
}

# filling_disk: in a mount namespace of its own
filling_disk() {
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  local run=(train "$config" --output-dir disk/run --epochs 100000 --set run.replicas=3 --set checkpoint.every_steps=20 --set checkpoint.keep=2)
  mount -t tmpfs -o size=4m tmpfs disk || fail "no small disk"
  for kind in ranks mpirun; do
    rm -rf disk/*
    if [ $kind = ranks ]; then
      "$tutti" "${run[@]}" --ranks 3 >$kind.log 2>&1 &
    else
      mpirun --oversubscribe -n 3 "$tutti" "${run[@]}" >$kind.log 2>&1 &
    fi
    job=$!
    wait_for disk/run/checkpoints/step_0000020 $job
    head -c 8m /dev/zero >disk/filler 2>/dev/null
    wait $job
    [ $? -eq 1 ] || fail "a record that cannot be written is no success: $kind"
    says $kind '^tutti: rank 0/3 on [^:]*: disk/run/[^:]*: cannot .*No space left on device; free some space'
    [ "$(grep -c '^tutti: rank' $kind.log)" = 1 ] || fail "more ranks than the one that writes speak: $kind"
  done
}

case_damaged() {
  # A rank's own file, damaged or gone: its checkpoint is, and the one before it is taken.
  expect 0 ranks --ranks 2 --set checkpoint.every_steps=1 --max-steps 4
  at() { echo "ranks/checkpoints/step_000000$1/ranks/$2.safetensors"; }
  printf x | dd of="$(at 4 1)" bs=1 seek=$(($(stat -c %s "$(at 4 1)") - 2)) conv=notrunc status=none
  rm "$(at 3 0)"
  expect 0 ranks --ranks 2 --set checkpoint.every_steps=0 --max-steps 5 --resume
  says ranks 'step_0000004 is damaged and will not be used: .*ranks/1.safetensors: its content has changed'
  says ranks 'step_0000003 is damaged and will not be used: .*ranks/0.safetensors: is missing'
  says ranks "resuming from 'ranks/checkpoints/step_0000002'"
  expect 0 whole --max-steps 5
  same whole ranks 5
  expect 0 one --ranks 2 --max-steps 2
  truncate -s -4 one/checkpoints/step_0000002/ranks/1.safetensors
  expect 1 one --ranks 2 --max-steps 3 --resume
  says one 'no checkpoint in .* is valid'
  expect 1 one --max-steps 3 --resume=one/checkpoints/step_0000002
  says one 'ranks/1.safetensors.*truncated'
}

case_killed() {
  expect 0 whole --ranks 2
  train parts --ranks 2 --set checkpoint.every_steps=3 &
  job=$!
  wait_for parts/checkpoints/step_0000003 $job
  # job is this script's subshell; below it the program, then mpirun, then the ranks.
  program=$(pgrep -P $job) launcher=$(pgrep -P "$(pgrep -P $job)")
  [ -n "$launcher" ] || fail "no launcher below $program"
  kill -KILL "$(pgrep -P "$launcher" | tail -n 1)"
  wait $job
  code=$?
  [ $code -ne 0 ] && [ $code -ne 75 ] || fail "exit code $code after a rank was killed"
  says parts '^tutti: rank [01]/2 .process [0-9]+.: killed by signal 9'
  [ "$(grep -c '^tutti:' parts.log)" = 1 ] || fail "more is said than which rank was killed"
  grep '"status":"failed"' parts/record.jsonl | grep -Eq 'rank 0/2 on [^:]*: rank 0/2' && fail "the record names the rank twice"
  expect 0 parts --ranks 2 --resume
  same whole parts 24
  # A resume from an earlier checkpoint that is killed before it writes one: folder and record are of its course.
  expect 0 back --set checkpoint.every_steps=4
  train back --resume=back/checkpoints/step_0000008 --epochs 1000 &
  job=$!
  until grep -q 'step 30/8000' back.log; do
    kill -0 $job 2>/dev/null || fail "the run ended before step 30"
    sleep 0.05
  done
  kill -KILL "$(pgrep -P $job)"
  wait $job
  says back 'checkpoint step_0000024 is of a course that was left by this resume: it is step_0000024.abandoned now'
  expect 0 back --resume
  says back "resuming from 'back/checkpoints/step_0000008'"
  same whole back 24
  [ "$(tail -n +2 back/steps.csv | cut -d, -f3 | tr '\n' ' ')" = "$(seq -s ' ' 24) " ] || fail "the record is not of one course: $(cat back/steps.csv)"
}

# terminated NAME FLAGS: a run that SIGTERM ends after its first checkpoint, with the code of a run that is to go on
terminated() {
  local name=$1 job
  shift
  "$tutti" train "$config" --output-dir "$name" --set checkpoint.every_steps=2 "$@" >>"$name.log" 2>&1 &
  job=$!
  wait_for "$name/checkpoints/step_0000002" $job
  kill -TERM $job
  ends 75 $job "after SIGTERM"
}

case_stopped() {
  expect 0 whole
  terminated parts
  says parts 'signal 15 with a checkpoint at step'
  # It is asked every fourth step and after each evaluation (docs/cli.md).
  step=$(grep '"event":"run_stop"' parts/record.jsonl | grep -o '"steps":[0-9]*' | cut -d: -f2)
  [ $((step % 4)) -eq 0 ] || fail "stopped at step $step, which is no fourth one"
  expect 0 parts --resume
  same whole parts 24
  terminated asked --epochs 100000 --set run.eval_every=0.001
  step=$(grep '"event":"run_stop"' asked/record.jsonl | grep -o '"steps":[0-9]*' | cut -d: -f2)
  [ -d "asked/checkpoints/$(printf step_%07d "$step")" ] || fail "no checkpoint of step $step"
  grep '"event":"eval"' asked/record.jsonl | tail -n 1 | grep -q "\"step\":$step," || fail "step $step was not evaluated before the stop"
}
