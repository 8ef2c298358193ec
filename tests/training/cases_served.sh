# Cases of training_test.sh. Servers of weights on real ranks.
# shellcheck shell=bash disable=SC2154

# counted NAME STEPS UPDATES [FROM LINES]: every step of the run has had so many updates, over all its parts; FROM: the steps from this
# one on, behind so many lines of the record
counted() {
  [ "$(servers_line "$1" version)" = $(($2 * $3)) ] || fail "$2 steps of $1 have $(servers_line "$1" version) updates"
  local sum from=${4:-0}
  sum=$(tail -n "+$((${5:-0} + 1))" "$1/record.jsonl" | grep '"event":"servers"' | grep -Eo '"updates":[0-9]*' | cut -d: -f2 | awk '{ sum += $1 } END { print sum }')
  [ "$sum" = $((($2 - from) * $3)) ] || fail "the record of $1 has $sum updates of the steps $from to $2"
}

# goes_on_counted NAME STEPS UPDATES FLAG...: a run that was killed goes on by so many steps, each of which has so many updates
goes_on_counted() {
  local name=$1 steps=$2 updates=$3 from lines
  shift 3
  from=$(latest_step "$name")
  lines=$(wc -l <"$name/record.jsonl")
  expect 0 "$name" "$@" --max-steps $((from + steps)) --resume
  counted "$name" $((from + steps)) "$updates" "$from" "$lines"
}

# last_rank JOB: the process of the last rank of a run in the background: below this script's subshell are the program, mpirun, the ranks
last_rank() { pgrep -P "$(pgrep -P "$(pgrep -P "$1")")" | tail -n 1; }

# stands_still NAME FLAG...: a run whose last rank stands still for a while goes on, and then stops when it is asked to
stands_still() {
  local name=$1 step=' step [0-9]+/' job victim
  shift
  train "$name" --max-steps 100000 "$@" &
  job=$!
  wait_for_lines "$name" $job 1 "$step"
  victim=$(last_rank $job)
  kill -STOP "$victim" || fail "no rank of $name could be stopped"
  sleep "$(patient 1)"
  kill -CONT "$victim"
  wait_for_lines "$name" $job $(($(grep -Ec "$step" "$name.log") + 2)) "$step"
  kill -TERM "$victim"
  wait $job
  [ $? -eq 75 ] || fail "the job has not outlived a rank that stood still: $name"
}

# stops_when_asked NAME FLAG...: a run whose last rank is asked to stop amid an epoch ends with 75 and a checkpoint of then. One step in hundreds is
# an epoch's last, so a second try is allowed; whoever is asked before the first step makes one. No step is logged, since a round ends where one is.
# The images are files, since otherwise each rank makes all of them.
stops_when_asked() {
  local name=$1 job steps of_epoch attempt
  shift
  [ -d many ] || "$tutti" data generate lattices many --train 2000 --test 8 >generate.log 2>&1 || fail "cannot generate lattices"
  for attempt in 1 2; do
    rm -f "$name.log"
    train "$name" --data-dir many --set model.width=8 --epochs 100000 --set run.log_every=100000 --max-steps 100000 --fresh "$@" &
    job=$!
    wait_for_lines "$name" $job 1 'to the first step'
    kill -TERM "$(last_rank $job)"
    wait $job
    [ $? -eq 75 ] || fail "a job that was asked to stop does not end with 75: $name"
    says "$name" 'stopped by signal 15 with a checkpoint at step'
    steps=$(latest_step "$name")
    of_epoch=$((2000 / $(grep -Eo '"global_batch":[0-9]+' "$name/record.jsonl" | head -n 1 | cut -d: -f2)))
    [ $((steps % of_epoch)) -eq 0 ] || return 0
  done
  fail "the wish was heard at the end of an epoch, in try $attempt, too: $name"
}

case_served() {
  local scheme name plain
  # One worker and a server of its own is plain training; one group and servers is the step.
  plain=(--set optimizer.momentum=0.9 --max-steps 8)
  expect 0 plain --replicas 1 "${plain[@]}"
  expect 0 alone --replicas 1 "${plain[@]}" --sync ps:async --set sync.server_ranks=1 --ranks 2
  same plain alone 8
  expect 0 step --replicas 2 "${plain[@]}" --ranks 2
  expect 0 group --replicas 2 "${plain[@]}" --sync groups:2 --set sync.server_ranks=2 --set comm.bucket_bytes=4096 --ranks 4
  expect 0 step-buckets --replicas 2 "${plain[@]}" --set comm.bucket_bytes=4096 --ranks 2
  same step-buckets group 8
  # Everything that an update may have, on a server of its own as without one.
  more=(--set optimizer.name=adam --set optimizer.lr=0.001 --set optimizer.clip_norm=1 --set batch.accumulate=2 --set optimizer.ema=0.9
    --set 'model.freeze=["conv1.*"]' --replicas 1 --max-steps 4)
  expect 0 more "${more[@]}"
  expect 0 more-served "${more[@]}" --sync ps:async --set sync.server_ranks=1 --ranks 2
  same more more-served 4
  # No gradient is lost or applied twice, however rounds are cut, over a resume amid an epoch too, beside a slow worker.
  for scheme in ps:async ps:ssp:0 groups:2; do
    name=${scheme//:/-}
    expect 0 "$name" --replicas 4 --ranks 4 --sync "$scheme" --max-steps 5 --slow 3:3 --set run.log_every=3 --set sync.servers=2 --set comm.bucket_bytes=4096
    expect 0 "$name" --replicas 4 --ranks 4 --sync "$scheme" --max-steps 8 --set run.log_every=2 --set sync.servers=2 --set comm.bucket_bytes=4096 --resume
    counted "$name" 8 $([ "$scheme" = groups:2 ] && echo 2 || echo 4)
    grep -Eq '"(compute|comm_exposed)_ms":-' "$name/record.jsonl" && fail "$name has computed or waited for less than no time"
  done
  # Nobody begins a step before all have done the one before: each of the others has changed the weights once at most.
  [ "$(servers_line ps-ssp-0 stale_most)" -le 3 ] || fail "gradients of workers in step are $(servers_line ps-ssp-0 stale_most) updates old"
  # What corrects old gradients, on ranks of their own, which a resume may have or not.
  expect 0 corrected --replicas 3 --ranks 4 --sync ps:async --max-steps 4 --set sync.server_ranks=1 --set sync.stale_rate=1 --set sync.delay_compensation=0.5
  expect 0 corrected --replicas 3 --ranks 3 --sync ps:async --max-steps 8 --set sync.stale_rate=1 --set sync.delay_compensation=0.5 --resume
  counted corrected 8 3
  # Where ranks that only serve are not counted in.
  exits 2 study study "$config" --ranks 2,3 --sync ps:async --set sync.server_ranks=1 --output-dir study
  says study 'sync.server_ranks is not built for studies'
  "$tutti" plan "$config" --ranks 3 --set sync.scheme=ps:async --set sync.server_ranks=1 --set batch.global=12 --json >plan.json 2>plan.log || fail "tutti plan of workers"
  grep -Eq '"replicas": ?2' plan.json || fail "tutti plan takes servers for workers"
}

# served_bytes NAME: that its servers and workers have sent, over all its parts
served_bytes() { grep '"event":"servers"' "$1/record.jsonl" | grep -Eo '"bytes":[0-9.e+]*' | cut -d: -f2 | awk '{ sum += $1 } END { printf "%d\n", sum }'; }

case_served_compressed() {
  local small=(--set comm.compression_min_bytes=256 --set optimizer.momentum=0.9) method scheme name
  local one=("${small[@]}" --replicas 1 --ranks 2 --sync ps:async --set sync.server_ranks=1)
  # A codec that keeps all of a gradient changes no bit, of one worker or of one group.
  expect 0 plain --replicas 1 --set optimizer.momentum=0.9 --max-steps 6
  expect 0 dense "${one[@]}" --max-steps 6
  expect 0 all "${one[@]}" --max-steps 6 --set comm.compression=topk:1
  same_tensors plain all 6
  expect 0 step --replicas 2 --set optimizer.momentum=0.9 --max-steps 6 --ranks 2
  expect 0 group "${small[@]}" --replicas 2 --sync groups:2 --set sync.server_ranks=1 --max-steps 6 --ranks 3 --set comm.compression=topk:1
  same_tensors step group 6
  # What was not sent is in the checkpoint: a resume goes on to the bit where the order of gradients is no matter of time.
  for method in bf16 fp16 int8 onebit topk:0.02; do
    expect 0 $method "${one[@]}" --max-steps 6 --set comm.compression=$method
    case $method in int8 | topk*) # a checkpoint keeps the same floats of all: case_compressed resumes bf16 and onebit
      in_parts 4 6 $method-parts "${one[@]}" --set comm.compression=$method
      same $method $method-parts 6 ;;
    esac
    cmp -s all/checkpoints/step_0000006/weights.safetensors $method/checkpoints/step_0000006/weights.safetensors && fail "$method has lost nothing"
    [ "$(served_bytes $method)" -lt "$(served_bytes dense)" ] || fail "$method has sent $(served_bytes $method) bytes, whole gradients $(served_bytes dense)"
    says $method "of [0-9]+ buckets of a gradient go to servers by comm.compression = \"$method\""
  done
  [ $((5 * $(served_bytes topk:0.02))) -lt "$(served_bytes dense)" ] || fail "a fiftieth of the gradients is $(served_bytes topk:0.02) of $(served_bytes dense) bytes"
  # Dense steps first, and a ramp; over many workers nothing is lost or done twice, nor with other ranks.
  expect 0 ramp "${one[@]}" --max-steps 8 --set comm.compression=topk:0.02 --set comm.compression_warmup_steps=2 --set comm.compression_ramp_steps=2
  [ "$(served_bytes ramp)" -gt "$(served_bytes topk:0.02)" ] || fail "a ramp has sent $(served_bytes ramp) bytes"
  for scheme in ps:ssp:1 groups:2; do
    name=${scheme//:/-}
    expect 0 "$name" "${small[@]}" --replicas 4 --ranks 4 --sync "$scheme" --max-steps 5 --slow 3:3 --set sync.servers=2 --set comm.bucket_bytes=4096 --set comm.compression=topk:0.05
    expect 0 "$name" "${small[@]}" --replicas 4 --ranks 4 --sync "$scheme" --max-steps 8 --set sync.servers=2 --set comm.bucket_bytes=4096 --set comm.compression=topk:0.05 --resume
    counted "$name" 8 $([ "$scheme" = groups:2 ] && echo 2 || echo 4)
    grep -q "dealt out anew" "$name.log" && fail "$name has not found what its workers kept"
  done
  expect 0 moved "${small[@]}" --replicas 3 --ranks 3 --sync ps:async --max-steps 4 --set comm.compression=int8
  expect 0 moved "${small[@]}" --replicas 2 --ranks 2 --sync ps:async --max-steps 6 --set comm.compression=int8 --resume --resume-anyway batch.global --resume-anyway run.replicas
  says moved "dealt out anew"
  # It learns.
  expect 0 learns --replicas 2 --ranks 2 --sync ps:async --set comm.compression_min_bytes=256 --set comm.compression=topk:0.1 --epochs 12 --set model.width=8 --set optimizer.lr=0.02
  grep '"event":"epoch"' learns/record.jsonl | grep -Eo '"train_loss":[^,}]*' | cut -d: -f2 |
    awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(last < 0.92 * first) }' || fail "compressed gradients have not been learnt from"
  # What needs the sum of all, or a step in common.
  for method in hitopk:0.1 powersgd:2 auto:int8; do
    expect 2 wrong "${small[@]}" --replicas 2 --ranks 2 --sync ps:async --max-steps 1 --set comm.compression=$method
    says wrong "sync.scheme = \"ps:async\" goes without comm.compression = \"$method\": .*; there are bf16, fp16, int8, onebit and topk:RATIO"
  done
  for scheme in local:2 easgd:2 dpsgd:1 gossip:0.5; do
    expect 2 wrong --replicas 2 --ranks 2 --sync $scheme --set comm.compression=int8
    says wrong "$scheme\" goes without comm.compression: it compresses gradients, and weights are what is sent"
  done
}

case_served_deaths() {
  local few=(--set model.width=8 --epochs 100000)
  local many=("${few[@]}" --set data.generate_train=180 --set run.log_every=20 --sync ps:async --ranks 3)
  # A killed worker ends the job, which goes on from its checkpoint, with what each had not sent by then.
  local sparse=(--set comm.compression=topk:0.1 --set comm.compression_min_bytes=256)
  train killed "${many[@]}" "${sparse[@]}" --replicas 3 --set checkpoint.every_steps=20 --max-steps 100000 &
  local job=$!
  wait_for killed/checkpoints/step_0000020 $job
  kill -KILL "$(last_rank $job)"
  wait $job && fail "the job has outlived a worker"
  goes_on_counted killed 40 3 "${many[@]}" "${sparse[@]}" --replicas 3
  grep -q "dealt out anew" killed.log && fail "workers have not found what they had not sent"
  # One that stands still for a while is waited for, and loses nothing; here a worker beside a server, and a server of its own.
  local own
  for own in 0 1; do
    stands_still "stopped-$own" "${many[@]}" --replicas $((3 - own)) --set sync.server_ranks=$own
    counted "stopped-$own" "$(latest_step "stopped-$own")" $((3 - own))
  done
  # A wish to stop ends the round with the step that has begun, whoever hears it: a worker, a rank of a group that does not send for it, a
  # server without a worker, be it the first one or another.
  local -A wishes=([worker]="--replicas 3 --ranks 3 --sync ps:async" [member]="--replicas 4 --ranks 4 --sync groups:2"
    [server]="--replicas 2 --ranks 3 --sync ps:async --set sync.server_ranks=1"
    [another]="--replicas 2 --ranks 4 --sync ps:async --set sync.server_ranks=2 --set comm.bucket_bytes=4096")
  local who
  for who in "${!wishes[@]}"; do
    # shellcheck disable=SC2086
    stops_when_asked "asked-$who" ${wishes[$who]}
  done
  # Nobody is slow who computes nothing.
  expect 2 slow-server "${many[@]}" --replicas 2 --set sync.server_ranks=1 --slow 2:3 --max-steps 1
  says slow-server 'run.slow names rank 2, which only serves'
}
