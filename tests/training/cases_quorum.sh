# Cases of training_test.sh. A step takes the first so many gradients of real workers.
# shellcheck shell=bash disable=SC2154

# dropped NAME: gradients that came too late for their step, over all parts of the run
dropped() { grep '"event":"servers"' "$1/record.jsonl" | grep -Eo '"dropped":[0-9]*' | cut -d: -f2 | awk '{ sum += $1 } END { print sum }'; }

case_quorum() {
  local plain=(--set optimizer.momentum=0.9 --max-steps 8) more own job
  # Without backups it is the step, to the bit, on servers of their own; with everything that an update may have.
  expect 0 step --replicas 3 "${plain[@]}" --ranks 3 --set comm.bucket_bytes=4096
  expect 0 all --replicas 3 "${plain[@]}" --ranks 5 --set comm.bucket_bytes=4096 --sync ps:sync --set sync.server_ranks=2
  same step all 8
  counted all 8 1
  more=(--set optimizer.name=adam --set optimizer.lr=0.001 --set optimizer.clip_norm=1 --set batch.accumulate=2 --set optimizer.ema=0.9
    --set 'model.freeze=["conv1.*"]' --replicas 2 --max-steps 4)
  expect 0 more "${more[@]}" --ranks 2
  expect 0 more-served "${more[@]}" --ranks 3 --sync ps:sync --set sync.server_ranks=1
  same more more-served 4
  # One worker is late: every step has three gradients of the others, over a resume amid an epoch too.
  expect 0 late --replicas 4 --ranks 4 --sync ps:sync --set sync.quorum=3 --max-steps 6 --slow 3:8 --set sync.servers=2 --set run.log_every=6 --set comm.bucket_bytes=4096 --set model.width=8
  expect 0 late --replicas 4 --ranks 4 --sync ps:sync --set sync.quorum=3 --max-steps 10 --set sync.servers=2 --set run.log_every=2 --set comm.bucket_bytes=4096 --set model.width=8 --resume
  says late '4 worker.s. of 1 rank.s., of whose gradients a step takes the first 3'
  counted late 10 1
  [ "$(dropped late)" -ge 1 ] || fail "nobody came late"
  says late 'gradients came too late for their step, and were dropped'
  grep -Eq '"loss":(null|0\.0,)' late/record.jsonl && fail "a loss of no gradient"
  # Who stands still is not waited for, but at the end of a round; who is killed ends the job, which goes on.
  local many=(--set model.width=8 --epochs 100000 --set data.generate_train=180 --set run.log_every=20 --sync ps:sync --set sync.quorum=2 --ranks 3 --replicas 3)
  stands_still stopped "${many[@]}"
  counted stopped "$(latest_step stopped)" 1
  train killed "${many[@]}" --set checkpoint.every_steps=20 --max-steps 100000 &
  job=$!
  wait_for killed/checkpoints/step_0000020 $job
  kill -KILL "$(last_rank $job)"
  wait $job && fail "the job has outlived a worker"
  goes_on_counted killed 40 1 "${many[@]}"
  # A wish to stop ends the round with a whole step.
  for own in 0 1; do
    stops_when_asked "asked-$own" --sync ps:sync --set sync.quorum=2 --replicas 3 --ranks $((3 + own)) --set sync.server_ranks=$own
  done
  # A study begins with one replica, which has no backups.
  "$tutti" study "$config" --ranks 1,2 --set run.replicas=0 --sync ps:sync --set sync.quorum=1 --repeats 1 --max-steps 4 --output-dir study >study.log 2>&1 || fail "a study with backups: $(tail -n 3 study.log)"
  grep -q '"event":"servers"' study/ps-sync/runs/n0002-r1/record.jsonl || fail "the study's two ranks have no backup"
  grep -q '"event":"servers"' study/ps-sync/runs/n0001-r1/record.jsonl && fail "a study's one rank has servers"
  grep -q 'has no effect' study.log && fail "a key of the study's scheme is said to have no effect"
  "$tutti" plan "$config" --ranks 3 --set run.replicas=3 --set sync.scheme=ps:sync --set sync.quorum=2 --json >plan.json 2>plan.log || fail "tutti plan of a quorum"
  # What cannot be.
  expect 2 wrong --ranks 2 --replicas 2 --sync ps:sync --set sync.quorum=3
  says wrong 'sync.quorum = 3 is more than the 2 replicas'
  expect 2 wrong --ranks 2 --replicas 4 --sync ps:sync --set sync.quorum=3
  says wrong 'with 4 workers takes a rank for each of 4 replicas, this job has 2 for them'
  expect 2 wrong --ranks 3 --replicas 3 --sync ps:sync --set sync.quorum=2 --set comm.compression=int8
  says wrong 'goes without comm.compression: a gradient that comes too late is dropped'
  expect 2 wrong --ranks 3 --replicas 3 --sync ps:sync --set sync.quorum=2 --set comm.sharded_update=true
  says wrong 'goes without comm.sharded_update: the servers have the optimizer'
  expect 2 wrong --ranks 3 --replicas 3 --sync ps:sync --set sync.quorum=2 --set sync.servers=2 --set optimizer.clip_norm=1
  says wrong 'optimizer.clip_norm needs the norm of a whole gradient'
}
