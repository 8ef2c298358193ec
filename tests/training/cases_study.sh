# Cases of training_test.sh. Studies.
# shellcheck shell=bash disable=SC2154

case_study() {
  # tiny.toml fixes two replicas, so the global batch stays: --mode strong.
  study() {
    "$tutti" study "$config" --mode strong --repeats 1 --set checkpoint.every_steps=1 --output-dir "$@" >>study.log 2>&1
  }
  answers() {
    local wanted=$1 code
    shift
    study "$@"
    code=$?
    [ $code -eq "$wanted" ] || fail "study $*: exit code $code, expected $wanted"
  }
  answers 0 missed --ranks 1,2 --target 1 --epochs 1
  says study 'target not reached, best test accuracy'
  says study 'was missed by some runs: 1 of 1 on 1 rank, 1 of 1 on 2 ranks'
  grep -q 'starting 2 ranks' study.log && fail "the runs' own lines are shown"
  [ -s missed/runs/n0002-r1/console.log ] || fail "no log of a run"
  for file in report.html study.json study.csv runs.csv; do [ -s missed/$file ] || fail "no $file"; done
  grep -q '"compiler"' missed/runs/n0001-r1/record.jsonl || fail "the record does not name the compiler"
  answers 3 missed --ranks 1,2 --target 1 --epochs 1 --require-target
  says study 'kept from before: target not reached'
  answers 0 missed --ranks 1,2 --target 1 --epochs 1 --set comm.timeout_s=300 --set checkpoint.keep=9
  answers 2 missed --ranks 1,2 --target 1 --epochs 2
  says study 'missed/runs/n0001-r1 was finished with another configuration .run.epochs: 1 there, 2 now.'
  answers 2 shared --ranks 1 --set checkpoint.dir=one
  says study 'checkpoint.dir = "one", but each run of a study keeps its checkpoints in its own folder'
  answers 2 shared --ranks 1 --resume
  [ ! -e shared ] || fail "a study that was refused left a folder"
  # run.output_dir of a file is where a study goes, and one that was killed goes on.
  printf 'include = "%s"\n[run]\noutput_dir = "own"\n[checkpoint]\nevery_steps = 1\n' "$config" >own.toml
  "$tutti" study own.toml --mode strong --repeats 1 --ranks 1 >own.log 2>&1 &
  job=$!
  wait_for own/runs/n0001-r1/checkpoints/step_0000002 $job
  kill -KILL $job
  wait $job
  "$tutti" study own.toml --mode strong --repeats 1 --ranks 1 >>own.log 2>&1 || fail "a killed study cannot be started again"
  [ "$(grep -c '"event":"run_stop"' own/runs/n0001-r1/record.jsonl)" -ge 1 ] || fail "the run did not end"
  [ ! -e own/runs/n0001-r1.attempt-1 ] || fail "a run with a checkpoint was begun anew"
  # A run that lost a rank goes on from its checkpoint when the study is started again.
  study lost --ranks 2 --epochs 100000 &
  job=$!
  record=lost/runs/n0002-r1/record.jsonl
  wait_for lost/runs/n0002-r1/checkpoints/step_0000002 $job
  # job is this script's subshell; below it the study, then its run, then mpirun, then the ranks.
  process=$job
  for _ in study run launcher rank; do process=$(pgrep -P "$process" | tail -n 1); done
  kill -KILL "$process"
  ends 1 $job "after a rank was killed"
  tail -n 1 $record | grep -q '"status":"failed"' || fail "the record does not say that the run failed"
  study lost --ranks 2 --epochs 100000 &
  job=$!
  goes_on lost $job "a failed run with a checkpoint"
  kill -TERM "$(pgrep -P $job)"
  ends 75 $job "of the study that went on"
  # Asked to stop it ends with 75; a second start finishes.
  study stopped --ranks 2 --epochs 400 &
  job=$!
  wait_for stopped/runs/n0002-r1/checkpoints/step_0000002 $job
  kill -TERM "$(pgrep -P $job)"
  ends 75 $job "after SIGTERM"
  says study 'Runs were asked to stop'
  # What was stopped has not failed.
  exits 75 collect study --collect --output-dir stopped
  says collect 'enters no number: stopped early, with a checkpoint'
  ! grep -q failed collect.log || fail "a stopped run is called failed"
  # As after a time-out: a key that changes neither results nor times is no reason to begin anew.
  study stopped --ranks 2 --epochs 400 --set comm.timeout_s=300 &
  job=$!
  record=stopped/runs/n0002-r1/record.jsonl
  goes_on stopped $job "a stopped run, after comm.timeout_s was raised,"
  kill -TERM "$(pgrep -P $job)"
  ends 75 $job "of the stopped study that went on"
  # Where no checkpoint is valid training does not go on: the run begins anew beside what it left.
  for manifest in stopped/runs/n0002-r1/checkpoints/step_*/manifest.json; do echo x >>"$manifest"; done
  study stopped --ranks 2 --epochs 400 &
  job=$!
  while ! [ -e stopped/runs/n0002-r1.attempt-1 ] || ! grep -qs '"event":"step"' $record; do
    kill -0 $job 2>/dev/null || fail "a run whose checkpoints are damaged was not begun anew"
    sleep 0.05
  done
  kill -TERM "$(pgrep -P $job)"
  wait $job
  says study 'n0002-r1: none of the checkpoints of the unfinished run there is valid'
}
