# Cases of training_test.sh. The folder of a run: what is in it, and who may use it.
# shellcheck shell=bash disable=SC2154

case_disagree() {
  # Ranks that were given different configurations end at once, with the key's name.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  for change in optimizer.lr=0.3 run.seed=7 run.epochs=5; do
    # One command for both ranks: mpirun of Open MPI 5.0.7 crashes where there are two.
    mpirun --oversubscribe -n 2 bash -c '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || set -- "$@" --set "$0"; exec "$@"' "$change" \
      "$tutti" train "$config" --output-dir "run-${change#*=}" >run.log 2>&1
    [ $? -eq 2 ] || fail "ranks that differ in $change"
    says run "${change%=*}"
  done
}

case_folder() {
  # A folder holds one run; nothing is lost.
  expect 0 run --max-steps 2
  expect 2 run --max-steps 2
  says run "'run' holds a run: continue it with --resume, set it aside with --fresh"
  expect 0 run --max-steps 3 --fresh
  [ -d run.1/checkpoints/step_0000002 ] && [ -d run/checkpoints/step_0000003 ] && [ ! -d run/checkpoints/step_0000002 ] || fail "--fresh did not set aside"
  # Without a folder each run gets its own; --resume alone goes on with the newest.
  for _ in 1 2; do "$tutti" train "$config" --max-steps 1 >>numbered.log 2>&1 || fail "no numbered folder"; done
  "$tutti" train "$config" --max-steps 2 --resume >>numbered.log 2>&1 || fail "no resume of the newest"
  [ -d runs/0001/checkpoints/step_0000001 ] && [ -d runs/latest/checkpoints/step_0000002 ] && [ "$(readlink runs/latest)" = 0002 ] || fail "numbered folders"
  [ "$(cut -d, -f4 runs/0002/record.jsonl | grep run_id | sort -u | wc -l)" = 1 ] || fail "a run has one run_id over its resumes"
  # The configuration in the folder is all that a next command needs.
  "$tutti" train runs/0002/config.toml --resume --max-steps 3 >>numbered.log 2>&1 || fail "config.toml does not resume"
  # All checkpoints damaged: not a new start.
  echo x >>run/checkpoints/step_0000003/manifest.json
  expect 1 run --max-steps 4 --resume
  exits 1 damaged eval "$config" --weights run
  says run 'no checkpoint in .run/checkpoints. is valid'
  [ -e run/checkpoints/step_0000003 ] || fail "the damaged checkpoint is gone"
  # A run that is refused before its first step leaves nothing, and with --json says how it ended.
  "$tutti" train "$config" --output-dir refused --batch-size 100000 --json >refused.json 2>refused.log && fail "a batch larger than the data set"
  [ -z "$(ls -A refused)" ] || fail "a run that was refused leaves something"
  says refused 'batch'
  grep -q '"status": "failed"' refused.json || fail "--json says nothing of a failure"
  # A second run at once, and what a killed one leaves.
  train long --set run.epochs=100000 --set checkpoint.every_steps=5 &
  job=$!
  wait_for long/checkpoints/step_0000005 $job
  expect 2 long --fresh
  says long "a run is under way in 'long': process [0-9]+ on "
  kill -KILL "$(pgrep -P $job)"
  wait $job
  mkdir -p long/checkpoints/.step_0000001.partial-1
  steps=$(find long/checkpoints -maxdepth 1 -name 'step_*' | sort | tail -n 1)
  expect 0 long --resume --set run.epochs=100000 --max-steps $((10#${steps##*_} + 1))
  [ -z "$(find long/checkpoints -name '.step*')" ] || fail "leftovers of the killed run"
  tail -n 1 long/steps.csv | grep -q . || fail "no CSV"
}

case_moved() {
  # The config.toml in a run's folder means the run beside it, wherever the folder lies by now.
  continues() {
    local folder=$1 steps=$2
    shift 2
    "$tutti" train "$folder/config.toml" --resume --max-steps "$steps" "$@" >>moved.log 2>&1 || fail "$folder/config.toml does not resume"
    [ "$(grep -o '"event":"run_stop".*"steps":[0-9]*' "$folder/record.jsonl" | tail -n 1 | grep -o '[0-9]*$')" = "$steps" ] || fail "the run in $folder did not go on to step $steps"
  }
  expect 0 one --max-steps 2 --set checkpoint.dir="$PWD/one/kept"
  mv one two
  continues two 3
  [ ! -e one ] || fail "a moved run goes on where it was"
  [ -d two/kept/step_0000003 ] || fail "the checkpoints did not go with the folder"
  cp -r two three
  (cd three && "$tutti" train config.toml --resume --max-steps 4 >>../moved.log 2>&1) || fail "config.toml does not resume in its own folder"
  [ ! -e two/kept/step_0000004 ] && [ -d three/kept/step_0000004 ] || fail "the copy of a run goes on in the original"
  continues three 5 --ranks 2
  # Of a run that was set aside: not the one that has taken its place.
  expect 0 aside --max-steps 2
  expect 0 aside --max-steps 2 --fresh
  cp aside/config.toml before.toml
  continues aside.1 3
  [ ! -d aside/checkpoints/step_0000003 ] && cmp aside/config.toml before.toml || fail "the run that was set aside goes on in its successor"
  # Elsewhere it is a configuration like others.
  "$tutti" train before.toml --max-steps 1 >>moved.log 2>&1 || fail "a copy of config.toml does not train"
  [ -e runs/0001/record.jsonl ] && [ ! -e record.jsonl ] || fail "a copy of config.toml takes the folder that it lies in"
  "$tutti" train three/config.toml --dry-run --resume --max-steps 6 >dry.log 2>&1 || fail "no dry run of a moved run"
  says dry 'resume three/kept/step_0000005'
  # Of any name, also one that TOML could not hold.
  odd=$(printf 'odd\377 "')
  "$tutti" train "$config" --output-dir "$odd" --max-steps 2 >>moved.log 2>&1 || fail "no run in a folder whose name is not UTF-8"
  continues "$odd" 3
  continues "$odd" 4
  "$tutti" train "$config" --output-dir none --set checkpoint.dir="$odd" >refused.log 2>&1
  [ $? -eq 2 ] && [ ! -e none ] || fail "a path that config.toml cannot hold was taken"
  says refused 'is not UTF-8, and config.toml, which keeps it'
  "$tutti" eval three/config.toml --weights three/kept >>moved.log 2>&1 || fail "no evaluation of a moved run"
}

case_best() {
  # The weights that reached the target, and the best ones, are on disk.
  for ranks in 1 2; do
    expect 0 target-$ranks --ranks $ranks --set run.eval_every=1 --set run.target=0.01 --epochs 50
    last=$(grep -o '"event":"target_reached".*"step":[0-9]*' target-$ranks/record.jsonl | grep -o '[0-9]*$')
    [ -d "target-$ranks/checkpoints/$(printf step_%07d "$last")" ] || fail "no checkpoint of step $last, which reached the target"
    expect 0 target-$ranks --ranks $ranks --set run.eval_every=1 --set run.target=0.01 --epochs 50 --resume
    says target-$ranks 'target reached before step'
  done
  same target-1 target-2 "$last"
  expect 0 run --set run.eval_every=1 --epochs 12 --set checkpoint.keep=1
  best=$(grep '"event":"eval"' run/record.jsonl | sed 's/.*"step":\([0-9]*\).*"accuracy":\([0-9.]*\).*/\2 \1/' | sort -k1,1gr -k2,2g | head -n 1)
  [ "$(readlink run/checkpoints/best)" = "$(printf step_%07d "${best#* }")" ] || fail "best is $(readlink run/checkpoints/best), not $best"
  "$tutti" eval "$config" --weights run >eval.log 2>&1 || fail "eval does not take the run's folder"
  says eval "weights of step ${best#* }, the best evaluation's"
  says eval "accuracy $(awk -v a="${best% *}" 'BEGIN { printf "%.2f", a * 100 }') %"
  says run 'evaluate: tutti eval run/config.toml --weights run '
  # Of a lowered target, an evaluation before the last may be the one that reached it.
  sed -i '/"event":"eval".*"step":8,/s/"accuracy":[0-9.]*/"accuracy":0.99/' run/record.jsonl
  expect 0 run --set run.eval_every=1 --epochs 12 --set checkpoint.keep=1 --target 0.98 --resume
  says run 'done: nothing to do: target reached before step 96, at epoch 1.00 with accuracy 0.9900'
}
