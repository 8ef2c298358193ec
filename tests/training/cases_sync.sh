# Cases of training_test.sh. Replicas that train apart and meet now and then.
# shellcheck shell=bash disable=SC2154

case_sync() {
  local scheme name
  # Whatever they meet for: the same bits on any number of ranks, and through a resume between two meetings, on other ranks.
  for scheme in local:3 local:never easgd:2 dpsgd:1 gossip:0.6; do
    name=${scheme/:/-}
    expect 0 "$name-one" --replicas 4 --sync "$scheme" --max-steps 8
    [ "$scheme" != local:never ] || continue # resumed amid local:3, replicas are what they are here
    expect 0 "$name-parts" --replicas 4 --sync "$scheme" --max-steps 5
    expect 0 "$name-parts" --replicas 4 --sync "$scheme" --max-steps 8 --ranks 2 --resume --set replay.spill=.
    same "$name-one" "$name-parts" 8
  done
  for scheme in local:3 dpsgd:1; do
    name=${scheme/:/-}
    expect 0 "$name-two" --replicas 4 --sync "$scheme" --max-steps 8 --ranks 2
    same "$name-one" "$name-two" 8
    losses "$name-one" >one.losses
    losses "$name-two" >two.losses
    cmp one.losses two.losses || fail "the losses of $scheme on one rank and on two differ"
  done
  cmp -s local-3-one/checkpoints/step_0000008/weights.safetensors local-never-one/checkpoints/step_0000008/weights.safetensors &&
    fail "meeting changes nothing"
  # So do centres of centres, which lie with one replica each.
  tree=(--replicas 5 --sync easgd:1 --set sync.tree=2 --set sync.tree_up=3)
  expect 0 tree-one "${tree[@]}" --max-steps 8
  expect 0 tree-parts "${tree[@]}" --max-steps 5 --ranks 2
  expect 0 tree-parts "${tree[@]}" --max-steps 8 --resume --set replay.spill=.
  same tree-one tree-parts 8
  tensor_lines tree-one/checkpoints/step_0000008/ranks/0.safetensors | grep -q 'center3$' || fail "the uppermost of three centres is not kept"
  # What an outer optimizer keeps is part of a checkpoint too.
  outer=(--replicas 4 --sync local:2 --set sync.outer=nesterov --set sync.outer_lr=0.7 --set sync.state=average --set sync.fragments=2)
  expect 0 outer-one "${outer[@]}" --max-steps 7
  expect 0 outer-parts "${outer[@]}" --max-steps 3 --ranks 2
  expect 0 outer-parts "${outer[@]}" --max-steps 7 --resume
  same outer-one outer-parts 7
  # local:1 is the step itself, where updates are linear in gradients; elsewhere it is not.
  expect 0 step --replicas 4 --max-steps 4
  expect 0 every --replicas 4 --sync local:1 --max-steps 4
  same step every 4
  expect 0 adam-step --replicas 4 --set optimizer.name=adam --set optimizer.lr=0.001 --max-steps 4
  expect 0 adam-every --replicas 4 --set optimizer.name=adam --set optimizer.lr=0.001 --sync local:1 --max-steps 4
  says adam-every 'replicas train apart: .* they meet after every step'
  # Replicas that the ranks cannot share evenly, batches that add up, frozen layers, an outer step after first steps together.
  more=(--replicas 3 --sync local:2 --set sync.first_steps=2 --set sync.outer=momentum --set batch.accumulate=2 --set 'model.freeze=["conv1.*"]')
  expect 0 uneven-one "${more[@]}" --max-steps 4
  expect 0 uneven-two "${more[@]}" --max-steps 4 --ranks 2
  same uneven-one uneven-two 4
  # Another scheme from here on: all begin with the model that they had together.
  expect 0 changed-one --replicas 4 --sync local:3 --max-steps 5
  cp -r changed-one changed-two
  expect 0 changed-one --replicas 4 --sync easgd:2 --resume-anyway sync.scheme --max-steps 8 --resume
  cp -r changed-two changed-gossip
  expect 0 changed-two --replicas 4 --sync easgd:2 --resume-anyway sync.scheme --max-steps 8 --resume --ranks 2
  same changed-one changed-two 8
  expect 0 changed-gossip --replicas 4 --sync gossip:1 --resume-anyway sync.scheme --max-steps 8 --resume
  expect 0 step-first --replicas 4 --max-steps 2
  expect 0 step-first --replicas 4 --sync local:2 --resume-anyway sync.scheme --max-steps 4 --resume
  # One replica has nobody to meet: it trains as ever.
  expect 0 alone --replicas 1 --max-steps 4
  expect 0 alone-local --replicas 1 --sync local:2 --max-steps 4
  cmp alone/checkpoints/step_0000004/weights.safetensors alone-local/checkpoints/step_0000004/weights.safetensors ||
    fail "one replica that meets nobody is not one replica"
  # The record says how often they met.
  expect 0 epoch --replicas 4 --sync local:2 --ranks 2 --set run.epochs=1
  grep '"event":"sync"' epoch/record.jsonl | grep -q '"meetings":2,"bytes":[1-9]' || fail "the record has no meetings"
}

case_sync_wrong() {
  expect 2 wrong --sync chat
  says wrong 'sync.scheme = "chat": there is no such scheme; schemes are step, local:K'
  expect 2 wrong --sync gossip:1.5
  says wrong "'1.5' is no probability above 0 and up to 1"
  expect 2 wrong --sync easgd:2 --set sync.tree=2 --set sync.tree_up=3
  says wrong 'sync.tree_up = 3 is no multiple of the steps between two meetings'
  expect 2 wrong --sync easgd:epoch --set sync.tree=2 --set sync.tree_up=4
  says wrong 'sync.tree_up = 4 counts steps, and is not for'
  expect 2 wrong --sync gossip:0.5 --set sync.tree=2
  says wrong 'sync.tree is of sync.scheme = "easgd"'
  expect 2 wrong --sync local
  says wrong 'it does not say how often'
  expect 2 wrong --sync local:0
  says wrong "'0' is no number of steps"
  expect 2 wrong --sync easgd:2 --set sync.outer=momentum
  says wrong 'sync.outer is of sync.scheme = "local"'
  expect 2 wrong --sync local:2 --set comm.sharded_update=true
  says wrong 'goes without comm.sharded_update: each replica has a whole optimizer of its own'
  expect 2 wrong --sync local:2 --set comm.compression=bf16
  says wrong 'goes without comm.compression'
  expect 2 wrong --sync local:2 --set sync.fragments=3
  says wrong 'sync.fragments = 3: there are fewer steps between two meetings'
  expect 0 idle --sync step --set sync.fragments=3 --max-steps 1
  says idle 'sync.fragments = 3 has no effect'
  expect 2 wrong --sync local:never --set sync.first_steps=5
  says wrong 'local:never" has no meetings'
  expect 2 wrong --sync local:4 --set sync.state=reset --set optimizer.name=adam
  says wrong 'reset" is not for adam'
  expect 2 wrong --sync easgd:2 --set sync.alpha=0.9
  says wrong 'must be below 2 / \(1 . replicas\)'
  # A resume by another scheme is another run.
  expect 0 other --sync local:2 --max-steps 2
  expect 2 other --sync easgd:2 --max-steps 4 --resume
  says other 'sync.scheme was "local:2" and is now "easgd:2"'
}

case_virtual() {
  local machine=$here/../../examples/machines/fat_tree.toml
  # A replay does what training does, and tells another time; the same on any number of ranks.
  expect 0 train --replicas 4 --sync local:2 --set run.epochs=2 --ranks 2
  for scheme in local:2 step gossip:0.5; do
    for ranks in 1 2; do
      name=replay-${scheme/:/-}-$ranks
      spill=$([ $scheme$ranks = local:21 ] && echo "--set replay.spill=.")
      "$tutti" replay "$config" --output-dir $name --replicas 4 --sync $scheme --set run.epochs=2 --ranks $ranks --machine "$machine" $spill \
        >$name.log 2>&1 || fail "tutti replay on $ranks rank(s): $(tail -n 5 $name.log)"
      grep -Eo '"virtual_[a-z_]*":[^,}]*' $name/record.jsonl >$name.times
    done
    grep -q '"virtual_seconds":[0-9]' $name.times || fail "no virtual time in the record"
    cmp replay-${scheme/:/-}-1.times $name.times || fail "virtual times of $scheme depend on the ranks"
  done
  # A step that takes as long as here has another time in each run, and the same results.
  printf '[device]\nstep_seconds = "measured"\n[between]\nlatency_us = 1\ngbit_per_s = 10\n' >measured.toml
  "$tutti" replay "$config" --output-dir measured --replicas 4 --sync local:2 --set run.epochs=2 --ranks 2 --machine measured.toml >measured.log 2>&1 ||
    fail "a measured replay: $(tail -n 5 measured.log)"
  same_tensors train measured 8
  same_kept train measured 8
  grep '"event":"epoch"' measured/record.jsonl | head -n 1 | grep -Eo '"virtual_seconds":[^,}]*' | cut -d: -f2 | awk '{ exit !($1 > 0 && $1 < 60) }' ||
    fail "no measured time"
  for ranks in 1 2; do same_tensors train replay-local-2-$ranks 8 && same_kept train replay-local-2-$ranks 8; done
  grep -Eq '"replayed_on":"fat tree, 200 Gb/s [(]' replay-step-1/record.jsonl || fail "the record does not name the machine"
  grep -q 'virtual_seconds":[0-9]' train/record.jsonl && fail "training without a machine tells its time"
  "$tutti" replay "$config" --output-dir none --replicas 4 >none.log 2>&1 && fail "a replay without a machine"
  says none 'tutti replay needs a machine whose time it tells: --machine FILE'
  printf '[device]\ntflops = 1\nspeed = 3\n[between]\nlatency_us = 1\ngbit_per_s = 1\n' >wrong.toml
  expect 2 wrong --machine wrong.toml
  says wrong "wrong.toml:3: 'speed' is no key of device: expected per_node, tflops, step_seconds"
  printf '[device]\ntflops = 1\n[between]\nlatency_us = -1\ngbit_per_s = 1\n' >wrong.toml
  expect 2 wrong --machine wrong.toml
  says wrong 'wrong.toml:4: between.latency_us must be at least 0, is -1'
  printf '[device]\nper_node = 1e300\ntflops = 1\n[between]\nlatency_us = inf\ngbit_per_s = 1\n' >wrong.toml
  expect 2 wrong --machine wrong.toml
  says wrong 'wrong.toml:2: device.per_node must be a whole number up to 16777216, is 1e.300'
  sed -i '/per_node/d' wrong.toml
  expect 2 wrong --machine wrong.toml
  says wrong 'wrong.toml:4: between.latency_us must be finite'
  expect 2 wrong --machine nowhere.toml
  says wrong 'replay.machine = .*nowhere.toml.: there is no such file'
  expect 2 wrong --replicas 4 --machine measured.toml --set comm.compression=bf16
  says wrong 'a replay goes without comm.compression = "bf16"'
  printf '[device]\ntflops = 1\n' >wrong.toml
  expect 2 wrong --machine wrong.toml
  says wrong 'a machine needs the table \[between\]'
}

case_replay_study() {
  local machine=$here/../../examples/machines/cloud_25gbit.toml
  run_study() {
    "$tutti" study "$config" --machine "$machine" --replicas 1,4 --sync step,local:4 --repeats 1 --epochs 1 \
      --set run.eval_every=1 --output-dir both "$@" >both.log 2>&1 || fail "the study: $(tail -n 5 both.log)"
  }
  run_study
  grep -Eq '^local-4 +4 ' both.log || fail "no row of local-4 on 4: $(grep local-4 both.log)"
  says both 'These runs are replays: a rank is a replica, and times are the virtual ones of 25 Gb/s cloud [(]'
  grep -q 'are no study' both.log && fail "replicas are not sizes"
  [ -s both/studies.html ] && [ -s both/step/report.html ] || fail "a report is missing"
  # The speed-up of step on 4 is what the records' virtual times say.
  epoch_of() { grep '"event":"epoch"' "both/step/runs/$1/record.jsonl" | grep -Eo '"virtual_seconds":[^,}]*' | cut -d: -f2; }
  said=$(sed -n 's/.*step *4 *\([0-9.]*\) .*/\1/p' both.log | tail -n 1)
  echo "$(epoch_of n0001-r1) $(epoch_of n0004-r1) $said" | awk '{ d = $1 / $2 - $3; exit d * d > 1e-4 }' || fail "speed-up $said"
  run_study
  says both 'kept'
  sed -n '/Finished so far/,/^$/p' both.log | grep -Eq '^local-4 +4 ' || fail "what is finished is not shown first: $(head -n 5 both.log)"
  # What a finished run of any scheme was is compared before a run of another one begins.
  exits 2 both study "$config" --machine "$machine" --replicas 1,4 --sync dpsgd,local:4 --repeats 1 --epochs 2 --set run.eval_every=1 --output-dir both
  says both 'local-4/runs/n0001-r1 was finished with another configuration [(]run.epochs: 1 there, 2 now[)]'
  [ ! -e both/dpsgd ] || fail "runs began before the study was refused"
  # The run line tells the machine's time, and a machine that has changed under its name is another one.
  cp "$machine" own.toml
  study_own() {
    "$tutti" study "$config" --machine own.toml --replicas 1,2 --repeats 1 --epochs 1 --set run.eval_every=1 --target 0.01 --output-dir own >own.log 2>&1
  }
  study_own || fail "the study of own.toml: $(tail -n 5 own.log)"
  says own 'target reached after [0-9.e-]+ virtual s'
  echo 'name = "another"' | cat - <(grep -v '^name' "$machine") >own.toml
  study_own && fail "a study mixes runs of two machines"
  says own 'the machine of replay.machine: 25 Gb/s cloud [(].* there, another [(]'
  # A configuration means machines beside it, wherever the command runs.
  mkdir -p beside
  { cat "$config"; printf '[replay]\nmachine = "own.toml"\n'; } >beside/run.toml
  cp "$machine" beside/own.toml
  rm own.toml
  "$tutti" replay beside/run.toml --output-dir beside/out --max-steps 1 >beside.log 2>&1 || fail "a machine beside its configuration: $(tail -n 3 beside.log)"
  # Keys that belong to one scheme follow it: a study of servers beside one of all together.
  "$tutti" study "$config" --machine "$machine" --replicas 1,4 --sync 'step,ps:async sync.stale_rate=1 sync.servers=2' --repeats 1 \
    --epochs 1 --set run.eval_every=1 --output-dir served >served.log 2>&1 || fail "a study of servers: $(tail -n 5 served.log)"
  grep -q '^stale_rate = 1' served/ps-async_stale_rate=1_servers=2/runs/n0004-r1/config.toml || fail "a scheme's own key is lost"
  grep -q '^stale_rate = 1' served/step/runs/n0004-r1/config.toml && fail "a key of one scheme is in the runs of another"
  [ "$(grep '"event":"servers"' served/ps-async_stale_rate=1_servers=2/runs/n0004-r1/record.jsonl | grep -c '"servers"')" -gt 0 ] || fail "no servers"
  # What a size of a scheme cannot be is said before any run.
  "$tutti" study "$config" --machine "$machine" --replicas 1,4 --sync step,groups:3 --epochs 1 --output-dir refused >refused.log 2>&1 &&
    fail "four replicas in groups of three"
  says refused 'groups:3" does not divide 4 replicas'
  [ -e refused ] && fail "runs began before the study was refused"
  "$tutti" study "$config" --replicas 1,4 >none.log 2>&1 && fail "replicas without a machine"
  says none 'name it with --machine FILE'
}
