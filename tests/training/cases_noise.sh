# Cases of training_test.sh. What a run tells of its gradient's noise and of slow ranks, and what is planned before it.
# shellcheck shell=bash disable=SC2154

# noise NAME: what its record says of noise, without times
noise() { grep '"event":"noise"' "$1/record.jsonl" | sed -E 's/"time":[^,]*,//'; }

case_noise() {
  local options=(--replicas 4 --set run.noise_every=2 --set run.noise_layers=true)
  expect 0 one "${options[@]}" --max-steps 8
  expect 0 two "${options[@]}" --max-steps 8 --ranks 2
  expect 0 sharded "${options[@]}" --max-steps 8 --ranks 2 --set comm.sharded_update=true
  expect 0 parts "${options[@]}" --max-steps 4 --ranks 2
  expect 0 parts "${options[@]}" --max-steps 8 --resume
  noise one >one.noise
  [ "$(wc -l <one.noise)" = 4 ] || fail "measured in every second of 8 steps: $(cat one.noise)"
  grep -Eq '"measured":1,"small_squares":[0-9.e-]+,.*"critical_batch":.*"layers":\{"bn1.bias":' one.noise || fail "$(head -n 1 one.noise)"
  for name in two sharded parts; do
    noise $name >$name.noise
    cmp one.noise $name.noise || fail "the noise of $name is not that of one rank"
  done
  same one parts 8
  # What was measured after the last line of the log is in a checkpoint, and not lost with a rank.
  expect 0 whole "${options[@]}" --max-steps 8 --set run.log_every=100 --set checkpoint.every_steps=3
  in_parts 3 8 again "${options[@]}" --set run.log_every=100 --set checkpoint.every_steps=3
  [ "$(noise whole | grep -Eo '"measured":[0-9]+' | cut -d: -f2 | awk '{ sum += $1 } END { print sum }')" = 4 ] || fail "not all of 8 steps: $(noise whole)"
  cmp <(noise whole) <(noise again) || fail "a resume has other noise: $(noise whole) $(noise again)"
  # Batches that add up are as good as replicas.
  expect 0 added --replicas 1 --set batch.accumulate=4 --set run.noise_every=4 --max-steps 4 --ranks 1
  [ "$(noise added | wc -l)" = 1 ] || fail "four batches of a replica have no noise"
  # Measuring changes nothing, and neither is there anything to measure in one batch, nor in weights.
  expect 0 off --replicas 4 --set run.noise_every=0 --max-steps 8
  same one off 8
  expect 0 alone --replicas 1 --set run.noise_every=1 --max-steps 2
  expect 0 apart --replicas 2 --sync local:2 --set run.noise_every=1 --max-steps 2
  [ -z "$(noise off)$(noise alone)$(noise apart)" ] || fail "noise of what has none"
  for name in alone apart; do says $name 'run.noise_every and run.noise_layers have no effect here'; done
  grep -q 'have no effect here' off.log one.log && fail "who does not ask for noise, or has it, is warned"
  # As a study tells it.
  "$tutti" study "$config" --ranks 1,2 --set run.replicas=0 --set run.noise_every=1 --set batch.accumulate=2 --epochs 1 --output-dir study >study.log 2>&1 || fail "the study: $(tail -n 5 study.log)"
  says study 'critical batch'
  grep -Eq '"critical_batch": ' study/study.json || fail "study.json has no critical batch"
}

# Forty times a step is far more than what other programs hold up a rank or a run.
case_slow() {
  local how=(--ranks 2 --batch-size 24 --set run.log_every=5 --set data.generate_train=480 --set run.epochs=1)
  expect 0 slow --slow 1:40 "${how[@]}"
  grep -Eq '"slowed":\["rank 1 by 40"\]' slow/record.jsonl || fail "the record does not name the slow rank"
  [ "$(grep -Ec '"event":"arrivals".*"straggler":1[,}]' slow/record.jsonl)" = 2 ] || fail "$(grep '"event":"arrivals"' slow/record.jsonl)"
  expect 0 fast "${how[@]}"
  same slow fast 10
  seconds() { grep '"event":"epoch"' "$1/record.jsonl" | grep -Eo '"seconds":[^,}]*' | cut -d: -f2; }
  echo "$(seconds slow) $(seconds fast)" | awk '{ exit !($1 > 1.5 * $2) }' || fail "slow: $(seconds slow) s, not slow: $(seconds fast) s"
  expect 0 chance --ranks 2 --slow 0:2 --slow 1:1.5 --slow-sigma 0.1 --max-steps 2
  grep -q '"slowed":\["rank 0 by 2","rank 1 by 1.5","all by chance, sigma 0.1"\]' chance/record.jsonl || fail "$(grep slowed chance/record.jsonl)"
  expect 2 wrong --slow 1:0.5
  says wrong "run.slow: '1:0.5' is not RANK:FACTOR"
  # A replay has no ranks to slow.
  printf '[device]\nstep_seconds = 1\n[between]\nlatency_us = 1\ngbit_per_s = 10\n' >machine.toml
  for more in "" --dry-run; do
    # shellcheck disable=SC2086
    expect 2 wrong --slow 0:2 --machine machine.toml --max-steps 1 $more
    says wrong "name what is slow in the machine's \\[\\[slow\\]\\] or \\[stragglers\\]"
  done
  # A report says so, too; sizes without that rank have nobody to slow.
  "$tutti" study "$config" --ranks 1,2 --set run.replicas=0 --set 'run.slow=["1:2"]' --epochs 1 --output-dir study >study.log 2>&1 || fail "the study: $(tail -n 5 study.log)"
  says study 'Ranks were made slow on purpose [(]run.slow[)]: rank 1 by 2'
}

case_advise() {
  local machine=$here/../../examples/machines/ethernet_1gbit.toml
  "$tutti" advise "$config" --machine "$machine" --batches 2,8 --steps 2 >advise.log 2>&1 || fail "advise: $(tail -n 5 advise.log)"
  says advise 'the fastest whose memory is below'
  says advise 'for an efficiency of 0.80: [0-9]+ worker'
  "$tutti" advise "$config" --machine "$machine" --batches 2,8 --steps 2 --efficiency 0.5 --json >advise.json 2>advise.log || fail "advise --json: $(tail -n 5 advise.log)"
  number() { grep -Eo "\"$1\": [0-9.e+-]+" "${2:-advise.json}" | head -n 1 | cut -d' ' -f2; }
  # W = ((1 + R) / a - 1) / R, T = FLOP / rate, O = 2 (latency + bytes / rate).
  echo "$(number workers_by_rule) $(number overhead_ratio) $(number compute_seconds) $(number flop) $(number overhead_seconds) $(number gradient_bytes)" |
    awk '{ w = int((($2 + 1) / 0.5 - 1) / $2); if (w < 1) w = 1; t = $3 * 5e10 / $4 - 1; o = 2 * (5e-5 + $6 * 8e-9) / $5 - 1
           exit !($1 == w && t * t < 1e-8 && o * o < 1e-8) }' || fail "the rules: $(cat advise.json)"
  # A step of batches that add up computes all of them.
  "$tutti" advise "$config" --machine "$machine" --batches 2 --steps 2 --set batch.accumulate=3 --json >three.json 2>advise.log ||
    fail "advise of three batches a step: $(tail -n 5 advise.log)"
  for key in flop compute_seconds; do
    echo "$(number $key) $(number $key three.json)" | awk '{ d = $2 / $1 - 3; exit d * d > 1e-8 }' || fail "$key of three batches: $(number $key three.json), of one $(number $key)"
  done
  # Other schemes by the same clock: one worker has no servers, and groups divide their workers.
  "$tutti" advise "$config" --machine "$machine" --batches 2 --steps 2 --workers 1,2,6 --sync 'step,local:8,ps:async sync.servers=2,groups:4' >schemes.log 2>&1 ||
    fail "advise --sync: $(tail -n 5 schemes.log)"
  says schemes 'step: replayed +local:8: replayed +ps:async sync.servers=2: replayed +groups:4: replayed'
  says schemes '^ +1 +1.00 .* 1.00 +1.00 +1.00 +1.00$'
  says schemes '^ +6 .* -$'
  awk '$1 == "workers" { below = 1 } below && $1 == 2 && !($5 >= $4) { exit 1 }' schemes.log || fail "on a slow network meeting rarely is no faster: $(cat schemes.log)"
  "$tutti" advise "$config" --sync local:8 >wrong.log 2>&1 && fail "schemes without a machine"
  says wrong 'name it with --machine FILE'
  "$tutti" advise "$config" --machine "$machine" --sync 'step batch.local=2' >wrong.log 2>&1 && fail "a scheme with a batch of its own"
  says wrong 'batch.local is for all schemes alike'
  "$tutti" advise "$config" --machine "$machine" --sync 'ps:async optimizer.momentum=0' >wrong.log 2>&1 && fail "a scheme with an optimizer of its own"
  says wrong 'optimizer.momentum is for all schemes alike'
  # The configuration's own scheme may be any: without --sync it is "step" that is replayed.
  local own
  for own in 'ps:async sync.server_ranks=1' 'local:8 sync.fragments=4' 'ps:sync sync.quorum=1'; do
    # shellcheck disable=SC2086
    own=$(printf -- ' --set %s' sync.scheme=$own)
    # shellcheck disable=SC2086
    "$tutti" advise "$config" --batches 2 --steps 1 $own >own.log 2>&1 || fail "advise$own: $(tail -n 5 own.log)"
    # shellcheck disable=SC2086
    "$tutti" advise "$config" --batches 2 --steps 1 --workers 1,2 --machine "$machine" $own >own.log 2>&1 || fail "advise --machine$own: $(tail -n 5 own.log)"
    says own 'step: replayed'
  done
  # shellcheck disable=SC2086
  "$tutti" advise "$config" --machine "$machine" --sync 'step,ps:sync' $own >wrong.log 2>&1 && fail "a quorum that is not replayed"
  says wrong 'leave sync.quorum and sync.server_ranks out'
  # What does not fit is not timed, and not advised.
  "$tutti" advise "$config" --batches 2 --memory 0.00001 --steps 1 >small.log 2>&1 || fail "advise --memory: $(tail -n 5 small.log)"
  says small 'too large'
  says small 'none of them fits'
  printf '[device]\nstep_seconds = "measured"\n[between]\nlatency_us = 1\ngbit_per_s = 10\n' >measured.toml
  "$tutti" advise "$config" --batches 2 --memory 0.00001 --steps 1 --machine measured.toml >small.log 2>&1 || fail "advise --memory --machine: $(tail -n 5 small.log)"
  says small 'Nothing is said of workers on measured: batch [0-9]+ does not fit the memory'
}
