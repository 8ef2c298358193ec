# Cases of training_test.sh. Servers that hold the weights of workers, replayed.
# shellcheck shell=bash disable=SC2154

# replay CODE NAME FLAG...: 4 replicas on a machine with a slow device, chance and a narrow network
replay() {
  local wanted=$1 name=$2
  shift 2
  [ -s uneven.toml ] ||
    printf 'name = "uneven"\n[device]\nstep_seconds = 1\n[between]\nlatency_us = 100\ngbit_per_s = 0.01\n[stragglers]\nsigma = 0.3\n[[slow]]\ndevice = 1\nfactor = 3\n' >uneven.toml
  [[ " $* " == *" --replicas "* ]] || set -- --replicas 4 "$@"
  "$tutti" replay "$config" --output-dir "$name" --machine uneven.toml "$@" >>"$name.log" 2>&1
  local code=$?
  [ $code -eq "$wanted" ] || fail "replay $name: exit code $code, expected $wanted"
}

# weights_of NAME: a checksum of those of its last checkpoint
weights_of() { cksum <"$1/checkpoints/$(cat "$1/checkpoints/latest")/weights.safetensors"; }

# servers_line NAME KEY: of its last line of servers
servers_line() { grep '"event":"servers"' "$1/record.jsonl" | tail -n 1 | grep -Eo "\"$2\":[^,}]*" | cut -d: -f2; }

case_servers() {
  local scheme name run
  replay 0 step --max-steps 8
  # The average of all gradients is the step, whoever adds them up.
  for scheme in ps:sync groups:4 groups:64; do
    name=${scheme/:/-}
    replay 0 "$name" --sync "$scheme" --max-steps 8
    [ "$(weights_of step)" = "$(weights_of "$name")" ] || fail "$scheme is not step"
  done
  replay 0 two-ranks --sync ps:sync --max-steps 8 --ranks 2
  same ps-sync two-ranks 8
  # Groups of one are workers by themselves.
  replay 0 async --sync ps:async --max-steps 8
  replay 0 ones --sync groups:1 --max-steps 8
  same async ones 8
  # No gradient is lost or applied twice, and one seed gives the same bits, over a resume amid an epoch too.
  for scheme in ps:async ps:ssp:0 ps:ssp:2 groups:2 ps:sync; do
    name=${scheme//:/-}
    replay 0 "$name-one" --sync "$scheme" --max-steps 8 --set sync.servers=2 --set comm.bucket_bytes=4096
    replay 0 "$name-parts" --sync "$scheme" --max-steps 5 --set sync.servers=2 --set comm.bucket_bytes=4096
    # Where versions of the weights lie changes no bits.
    spill=$([ "$scheme" = ps:sync ] || echo "--set replay.spill=.")
    # shellcheck disable=SC2086
    replay 0 "$name-parts" --sync "$scheme" --max-steps 8 --set sync.servers=2 --set comm.bucket_bytes=4096 --resume $spill
    same "$name-one" "$name-parts" 8
    for run in one parts; do grep '"event":"step"' "$name-$run/record.jsonl" | grep -Eo '"loss":[^,}]*' >$run.losses; done
    cmp one.losses parts.losses || fail "the losses of $scheme differ over a resume"
  done
  [ "$(servers_line ps-async-parts version)" = 32 ] || fail "8 steps of 4 workers have $(servers_line ps-async-parts version) updates"
  [ "$(servers_line groups-2-parts version)" = 16 ] || fail "8 steps of 2 groups have $(servers_line groups-2-parts version) updates"
  [ "$(weights_of async)" != "$(weights_of step)" ] || fail "asynchronous updates are the step"
  # Four of one version, one after another: 0, 1, 2 and 3 updates old.
  grep -q '"staleness":\[4,4,4,4\]' ps-ssp-0-one/record.jsonl || fail "workers in step with each other are of several versions"
  # At the end of an epoch all meet, and begin the next one with the same weights.
  local epoch steps
  epoch=$(grep '"event":"epoch"' async/record.jsonl | head -n 1 | grep -Eo '"step":[0-9]+' | cut -d: -f2)
  for steps in "$epoch" $((epoch - 1)); do
    replay 0 "round-$steps" --sync ps:async --max-steps "$steps"
    tensor_lines "round-$steps/checkpoints/$(cat "round-$steps/checkpoints/latest")/state.safetensors" | grep -c '[.]version ' >"round-$steps.older"
  done
  [ "$(cat "round-$epoch.older")" = 0 ] || fail "a worker has older weights after an epoch"
  [ "$(cat "round-$((epoch - 1)).older")" -gt 0 ] || fail "no worker has older weights amid an epoch"
  # What corrects old gradients changes them, and is exact over a resume as well; with everything that an update may have.
  more=(--set optimizer.name=adam --set optimizer.lr=0.001 --set optimizer.clip_norm=1 --set batch.accumulate=2 --set optimizer.ema=0.9
    --set 'model.freeze=["conv1.*"]' --set sync.stale_rate=1 --set sync.delay_compensation=0.5)
  replay 0 more --sync ps:async --max-steps 4 "${more[@]}"
  replay 0 more-parts --sync ps:async --max-steps 3 "${more[@]}"
  replay 0 more-parts --sync ps:async --max-steps 4 "${more[@]}" --resume
  same more more-parts 4
  for key in delay_compensation stale_rate; do
    replay 0 "$key" --sync ps:async --max-steps 8 --set "sync.$key=1"
    [ "$(weights_of async)" != "$(weights_of "$key")" ] || fail "sync.$key changes nothing"
  done
  # The first three of four gradients are the step of three replicas, without the slow one.
  quorum=(--sync ps:sync --set sync.quorum=3 --set run.epochs=1)
  replay 0 quorum "${quorum[@]}"
  replay 0 three --replicas 3 --set run.epochs=1
  cmp "quorum/checkpoints/$(cat quorum/checkpoints/latest)/weights.safetensors" "three/checkpoints/$(cat three/checkpoints/latest)/weights.safetensors" ||
    fail "a quorum of three is not three replicas"
  [ "$(servers_line quorum dropped)" -ge 1 ] || fail "nobody came late: $(servers_line quorum dropped)"
  replay 0 quorum-parts "${quorum[@]}" --max-steps 2
  replay 0 quorum-parts "${quorum[@]}" --resume --dry-run
  replay 0 quorum-parts "${quorum[@]}" --resume
  same quorum quorum-parts 5
  # A loss that is not finite is that of the weights that its worker took.
  replay 1 nan --sync ps:async --max-steps 8 --lr 1e30
  says nan 'the loss is .* at step [0-9]+, replica [0-3]: .*(layer|parameter) '
  # One replica has the weights itself, and no messages.
  replay 0 alone --replicas 1 --max-steps 4
  replay 0 alone-async --replicas 1 --max-steps 4 --sync ps:async
  same alone alone-async 4
  cmp <(grep -o '"virtual_seconds":[^,}]*' alone/record.jsonl) <(grep -o '"virtual_seconds":[^,}]*' alone-async/record.jsonl) || fail "one replica pays for servers"
  # From another scheme: all workers begin with its model.
  replay 0 changed --max-steps 4
  replay 0 changed --sync ps:async --max-steps 8 --resume --resume-anyway sync.scheme
  says changed 'all workers begin at step 4 with the servers. weights'
  # And to replicas apart: the servers' checkpoint has no weights of each.
  replay 0 changed --sync local:2 --max-steps 10 --resume --resume-anyway sync.scheme
  # A study over replicas begins with one, which is alone whatever the quorum.
  replay 0 quorum-alone --sync ps:sync --set sync.quorum=3 --replicas 1 --max-steps 4
  same alone quorum-alone 4
  # Without a machine the step is run alone, and that is said.
  expect 0 no-machine --replicas 4 --sync ps:sync --set sync.servers=2 --max-steps 2
  says no-machine 'is run as step: .*sync.servers says nothing'
}

case_servers_wrong() {
  replay 2 wrong --sync ps
  says wrong 'there is no such way to use servers; with servers there are ps:sync, ps:async, ps:ssp:S'
  replay 2 wrong --sync ps:ssp:x
  says wrong "'x' is no number from 0 on"
  replay 2 wrong --sync groups:3
  says wrong 'groups:3" does not divide 4 replicas'
  replay 2 wrong --sync ps:async --ranks 2
  says wrong 'a replay of sync.scheme = "ps:async" runs on one rank, not on 2'
  replay 2 wrong --sync ps:async --dry-run --ranks 2
  replay 2 wrong --sync ps:sync --set replay.spill=.
  says wrong 'there is one: leave it out'
  printf '[device]\nstep_seconds = "measured"\n[between]\nlatency_us = 1\ngbit_per_s = 10\n' >measured.toml
  expect 2 wrong --replicas 4 --sync ps:async --machine measured.toml --dry-run
  says wrong 'cannot be "measured": measured needs device.tflops'
  for ranks in 1 2; do
    replay 2 wrong --sync ps:async --set sync.server_ranks=1 --ranks $ranks
    says wrong "sync.server_ranks are ranks that are really there; a replay's servers are on its machine"
  done
  replay 2 wrong --sync ps:async --set comm.compression=bf16
  says wrong 'goes without comm.compression'
  replay 2 wrong --sync local:2 --set sync.servers=2
  says wrong 'sync.servers is of sync.scheme = "ps:..." and "groups:G", not of "local:2"'
  replay 2 wrong --sync ps:sync --set sync.stale_rate=1
  says wrong 'sync.stale_rate is of sync.scheme = "ps:async"'
  expect 2 train --sync ps:async --replicas 4
  says train 'takes a rank for each of 4 replicas, this job has 1 for them: --ranks 4; or a replay, .*: tutti replay CONFIG --machine FILE --replicas 4'
  replay 2 wrong --sync ps:async --set sync.quorum=3
  says wrong 'sync.quorum is of sync.scheme = "ps:sync"'
  replay 2 wrong --sync ps:sync --set sync.quorum=5
  says wrong 'sync.quorum = 5 is more than the 4 replicas'
  # The order of gradients is the machine's, so another machine is another run.
  replay 0 other --sync ps:async --max-steps 2
  sed 's/factor = 3/factor = 2/' uneven.toml >even.toml && mv even.toml uneven.toml
  replay 2 other --sync ps:async --max-steps 4 --resume
  says other 'replay.machine.content was uneven .*--resume-anyway replay.machine.content'
  replay 0 other --sync ps:async --max-steps 4 --resume --resume-anyway replay.machine.content
  # And so are the buckets in which they are sent.
  replay 2 other --sync ps:async --max-steps 6 --resume --set comm.bucket_bytes=4096
  says other 'buckets of 1048576 bytes and is now .*buckets of 4096 bytes'
}
