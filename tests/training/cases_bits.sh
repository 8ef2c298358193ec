# Cases of training_test.sh. What must not change a bit: ranks, sharding, links, choices of kernels.
# shellcheck shell=bash disable=SC2154

case_ranks() {
  expect 0 one --set model.width=16 --max-steps 3
  expect 0 two --set model.width=16 --max-steps 3 --ranks 2
  same one two 3
  for threads in 1 2; do
    # Five steps are an epoch.
    expect 0 three-one-$threads --replicas 3 --threads $threads --max-steps 6
    expect 0 three-two-$threads --replicas 3 --threads $threads --max-steps 6 --ranks 2
    same three-one-$threads three-two-$threads 6
    # The losses are summed by replica, as the weights are: the ranks hold 3 or 2 and 1 of them.
    losses three-one-$threads >one.losses
    losses three-two-$threads >two.losses
    grep -q train_loss one.losses && [ "$(grep -c '"loss":[0-9]' one.losses)" -ge 6 ] || fail "there are no losses to compare"
    cmp one.losses two.losses || fail "the losses of three-one-$threads and three-two-$threads differ"
  done
}

case_groups() {
  # Updates that differ by parameters, with norms and without, sharded or not.
  lines=(--set 'optimizer.decay=["linear.weight: 0.02", "layer3.*: 1e-3"]' --set 'optimizer.rates=["linear.*: 3"]' --set 'optimizer.exclude=["norm"]')
  for name in sgd lamb; do
    rule=(--set optimizer.name=$name --set optimizer.eps=1e-6 "${lines[@]}" --max-steps 3)
    expect 0 $name-one "${rule[@]}"
    expect 0 $name-two "${rule[@]}" --ranks 2
    expect 0 $name-shards "${rule[@]}" --ranks 2 --set comm.sharded_update=true
    same $name-one $name-two 3
    same $name-one $name-shards 3
  done
  expect 0 plain --max-steps 3
  cmp -s plain/checkpoints/step_0000003/weights.safetensors sgd-one/checkpoints/step_0000003/weights.safetensors && fail "the lines change nothing"
  expect 2 wrong --set 'optimizer.decay=["fc.weight: 0.1"]'
  says wrong "optimizer.decay: nothing is called 'fc.weight'; there are conv1.weight, .*, linear.weight, linear.bias"
  expect 2 wrong --set 'optimizer.rates=["linear.weight"]'
  says wrong "optimizer.rates: 'linear.weight' is not a pattern, a colon and a number"
  expect 2 wrong --set 'optimizer.rates=["linear.weight: 0"]'
  says wrong "must be above 0; model.freeze leaves"
}

case_accumulate() {
  # Without batch norm: two and three replicas of two batches are four and six replicas of one.
  plain=(--set model.name=mlp --set model.width=0 --set 'model.hidden=[16]' --max-steps 4)
  expect 0 four "${plain[@]}" --replicas 4
  expect 0 six "${plain[@]}" --replicas 6
  expect 0 two "${plain[@]}" --replicas 2 --set batch.accumulate=2
  expect 0 one "${plain[@]}" --replicas 1 --set batch.accumulate=4
  same_weights four two 4
  same_weights four one 4
  expect 0 three "${plain[@]}" --replicas 3 --set batch.accumulate=2 --ranks 2
  same_weights six three 4
  losses four >one.losses
  losses two >two.losses
  cmp one.losses two.losses || fail "the losses of four replicas and of two that accumulate differ"
  config=$configs/volumes.toml
  volumes=(--set data.dir="$folder/volumes" --set batch.global=0 --set batch.local=1 --max-steps 2)
  "$tutti" data generate cosmoflow volumes --side 32 --train 8 --test 2 --seed 5 >generate.log 2>&1 || fail "generating volumes"
  expect 0 dropout-four "${volumes[@]}" --replicas 4
  expect 0 dropout-two "${volumes[@]}" --replicas 2 --set batch.accumulate=2
  same_weights dropout-four dropout-two 2
  config=$configs/tiny.toml
  # With batch norm.
  norms=(--set batch.accumulate=2)
  expect 0 norm-one "${norms[@]}" --max-steps 5
  expect 0 norm-two "${norms[@]}" --max-steps 5 --ranks 2
  same norm-one norm-two 5
  says norm-one "2 replica\(s\) of 2 x 3 samples"
  expect 0 norm-shards "${norms[@]}" --max-steps 5 --ranks 2 --set comm.sharded_update=true
  same norm-one norm-shards 5
  expect 0 norm-parts "${norms[@]}" --max-steps 3
  expect 0 norm-parts "${norms[@]}" --max-steps 5 --ranks 2 --resume
  same norm-one norm-parts 5
  expect 2 norm-parts --set batch.accumulate=3 --max-steps 6 --resume
  says norm-parts "batch.accumulate was 2 and is now 3"
  expect 2 wrong --set batch.local=0 --set batch.global=6 --set batch.accumulate=4
  says wrong "batch.global = 6 does not divide by 2 replicas and batch.accumulate = 4"
}

case_average() {
  # tensor FILE NAME: checksum of its bytes
  tensor() {
    local begin bytes
    read -r begin bytes _ < <(tensor_lines "$1" | grep " $2\$")
    tail -c +$((begin + 1)) "$1" | head -c "$bytes" | cksum
  }
  for name in sgd lars; do
    ema=(--set optimizer.name=$name --set optimizer.ema=0.9 --set optimizer.ema_from=2 --set 'optimizer.exclude=["norm"]')
    expect 0 $name-one "${ema[@]}" --max-steps 6
    expect 0 $name-two "${ema[@]}" --max-steps 6 --ranks 2
    same $name-one $name-two 6
    expect 0 $name-shards "${ema[@]}" --max-steps 6 --ranks 2 --set comm.sharded_update=true
    same $name-one $name-shards 6
    expect 0 $name-parts "${ema[@]}" --max-steps 4
    expect 0 $name-parts "${ema[@]}" --max-steps 6 --resume --ranks 2 --set comm.sharded_update=true
    same $name-one $name-parts 6
    # All ranks evaluate the average.
    grep '"event":"eval"' $name-one/record.jsonl | tail -n 1 | grep -Eo '"loss":[^,}]*' >one.loss
    grep '"event":"eval"' $name-shards/record.jsonl | tail -n 1 | grep -Eo '"loss":[^,}]*' >two.loss
    [ -s one.loss ] && cmp one.loss two.loss || fail "the evaluations of $name-one and $name-shards differ"
  done
  # Training is as without it, and the average is another.
  expect 0 plain --set 'optimizer.exclude=["norm"]' --max-steps 6
  last=checkpoints/step_0000006
  [ "$(tensor plain/$last/weights.safetensors conv1.weight)" = "$(tensor sgd-one/$last/state.safetensors conv1.weight.raw)" ] || fail "averaging has changed the weights"
  [ "$(tensor plain/$last/weights.safetensors conv1.weight)" != "$(tensor sgd-one/$last/weights.safetensors conv1.weight)" ] || fail "the average is the weights"
  # What tutti eval says of the checkpoint is what training said.
  "$tutti" eval "$config" --weights sgd-one --json >eval.json 2>eval.log || fail "tutti eval"
  [ "$(grep -Eo '"loss": ?[0-9.e+-]*' eval.json | grep -Eo '[0-9.]{6}' | head -n 1)" = "$(grep '"event":"eval"' sgd-one/record.jsonl | tail -n 1 | grep -Eo '"loss":[^,}]*' | grep -Eo '[0-9.]{6}' | head -n 1)" ] ||
    fail "tutti eval says $(cat eval.json)"
  # Until it begins it is the weights; with some of them frozen; and one that begins in a resume.
  expect 0 late --set 'optimizer.exclude=["norm"]' --set optimizer.ema=0.9 --set optimizer.ema_from=50 --max-steps 6
  cmp plain/$last/weights.safetensors late/$last/weights.safetensors || fail "the average has begun too early"
  # An update in two stages, too, comes before its average.
  lars=(--set optimizer.name=lars --max-steps 6)
  expect 0 lars-plain "${lars[@]}"
  expect 0 lars-late "${lars[@]}" --set optimizer.ema=0.9 --set optimizer.ema_from=50
  cmp lars-plain/$last/weights.safetensors lars-late/$last/weights.safetensors || fail "the average of lars is not that of its weights"
  frozen=(--set optimizer.ema=0.9 --set 'model.freeze=["conv1.*", "bn1.*"]' --max-steps 4)
  expect 0 frozen-one "${frozen[@]}"
  expect 0 frozen-two "${frozen[@]}" --ranks 2 --set comm.sharded_update=true
  same frozen-one frozen-two 4
  expect 0 plain --set 'optimizer.exclude=["norm"]' --set optimizer.ema=0.9 --max-steps 8 --resume --resume-anyway optimizer.ema
  expect 0 sgd-one --set 'optimizer.exclude=["norm"]' --max-steps 8 --resume --resume-anyway optimizer.ema --resume-anyway optimizer.ema_from
  grep "begins at zero" plain.log sgd-one.log && fail "the momentum was lost"
  expect 2 wrong --set optimizer.ema_from=3
  says wrong "optimizer.ema_from needs optimizer.ema"
}

case_clip() {
  # norms NAME: of its steps and epochs, as the record has them
  norms() { grep -Eo '"grad_norm":[^,}]*' "$1/record.jsonl"; }
  last=checkpoints/step_0000004
  for name in sgd adamw lars lamb; do
    clip=(--set optimizer.name=$name --set optimizer.eps=1e-6 --set 'optimizer.exclude=["norm"]' --set optimizer.clip_norm=0.5 --replicas 4)
    expect 0 $name-one "${clip[@]}" --max-steps 4
    norms $name-one >one.norms
    [ "$(grep -Ec ':[0-9]' one.norms)" = 5 ] || fail "four steps and an epoch have no norms"
    expect 0 $name-four "${clip[@]}" --max-steps 4 --ranks 4 --set comm.sharded_update=true
    [ $name != sgd ] || expect 0 sgd-two "${clip[@]}" --max-steps 4 --ranks 2  # where all ranks update all, the rule is no matter
    for other in $name-four $([ $name != sgd ] || echo sgd-two); do
      same $name-one $other 4
      norms $other >other.norms
      cmp one.norms other.norms || fail "the norms of $other"
    done
    [ $name = sgd ] || [ $name = lamb ] || continue  # of which one looks at the norms of its updates, too
    expect 0 $name-parts "${clip[@]}" --max-steps 3
    expect 0 $name-parts "${clip[@]}" --max-steps 4 --resume --ranks 2 --set comm.sharded_update=true
    same $name-one $name-parts 4
  done
  # A wide limit leaves all bits, a narrow one does not; what is off leaves no norms.
  expect 0 plain --set 'optimizer.exclude=["norm"]' --replicas 4 --max-steps 4
  expect 0 wide --set 'optimizer.exclude=["norm"]' --replicas 4 --max-steps 4 --set optimizer.clip_norm=1e6
  same plain wide 4
  cmp -s plain/$last/weights.safetensors sgd-one/$last/weights.safetensors && fail "clipping changes nothing"
  grep -q '"grad_norm":[0-9]' plain/record.jsonl && fail "norms without clipping"
  # With averages, frozen parameters, accumulation, other buckets and compression.
  more=(--set optimizer.clip_norm=0.5 --set optimizer.ema=0.9 --set 'model.freeze=["conv1.*"]' --set batch.accumulate=2)
  expect 0 more-one "${more[@]}" --max-steps 4
  expect 0 more-two "${more[@]}" --max-steps 4 --ranks 2 --set comm.sharded_update=true --set comm.bucket_bytes=16KiB
  same more-one more-two 4
  expect 0 more-parts "${more[@]}" --max-steps 3 --ranks 2
  expect 0 more-parts "${more[@]}" --max-steps 4 --resume
  same more-one more-parts 4
  packed=(--set optimizer.clip_norm=0.5 --ranks 2 --set comm.compression=int8 --set comm.compression_min_bytes=256)
  expect 0 packed "${packed[@]}" --max-steps 4
  in_parts 2 4 packed-parts "${packed[@]}"
  same packed packed-parts 4
  expect 2 more-one "${more[@]}" --set optimizer.clip_norm=1 --max-steps 5 --resume
  says more-one "optimizer.clip_norm was 0.5 and is now 1"
  expect 2 wrong --set optimizer.clip_norm=-1
  says wrong "optimizer.clip_norm must be at least 0"
  # Gradients whose squares do not fit: an error before the weights are used.
  expect 1 long --set optimizer.clip_norm=1 --set model.name=mlp --set model.width=0 --set 'model.hidden=[16]' --set optimizer.lr=2e19 --max-steps 9
  says long "the norm of the gradient is infinite at step 2, although each"
}

case_precisions() {
  expect 0 one --precision bf16 --set model.width=16 --max-steps 3
  expect 0 two --precision bf16 --set model.width=16 --max-steps 3 --ranks 2
  same one two 3
}

case_replay() {
  expect 0 measured --set plan.measure=true --max-steps 4 --ranks 2
  expect 0 again --set plan.measure=true --max-steps 4 --set plan.choices_from=measured/checkpoints
  same measured again 4
  expect 1 parts --set plan.choices_from=nowhere
  says parts "plan.choices_from: no valid checkpoint in '.*/nowhere'"
}

case_exchange() {
  # None of this may change a bit.
  expect 0 plain --max-steps 6 --replicas 3 --ranks 3
  for how in comm.bucket_bytes=16KiB comm.priority=false comm.algorithm=recursive_halving comm.shape=1gbit,200us; do
    expect 0 "${how#*.}" --max-steps 6 --replicas 3 --ranks 3 --set $how
    same plain "${how#*.}" 6
  done
  expect 0 chunks --max-steps 6 --replicas 3 --ranks 3 --set comm.shape=1gbit,200us --set comm.chunk_bytes=4KiB
  same plain chunks 6
  expect 0 seen --max-steps 3 --ranks 2 --profile
  grep -q '"exchange of bucket 0"' seen/trace.rank1.json || fail "the trace does not show the exchange"
  expect 2 wrong --ranks 2 --set comm.shape=fast
  says wrong "comm.shape"
  expect 1 ring --ranks 3 --replicas 3 --max-steps 1 --set comm.algorithm=ring
  says ring "ring does not add in the order of the tree"
  expect 0 free --ranks 3 --replicas 3 --max-steps 1 --set comm.algorithm=ring --set comm.reproducible=false --set comm.shape=1gbit
}

case_sharded() {
  for optimizer in sgd adamw lars lamb; do
    for ranks in 2 3; do
      expect 0 $optimizer-$ranks --max-steps 5 --replicas $ranks --set optimizer.name=$optimizer --set optimizer.weight_decay=1e-3
      expect 0 $optimizer-$ranks-sharded --max-steps 5 --replicas $ranks --ranks $ranks --set optimizer.name=$optimizer --set optimizer.weight_decay=1e-3 --set comm.sharded_update=true
      same $optimizer-$ranks $optimizer-$ranks-sharded 5
    done
    [ $optimizer = sgd ] || [ $optimizer = lamb ] || continue  # a sum goes over the link, or two, as lamb's norms need
    expect 0 $optimizer-network --max-steps 5 --ranks 2 --set optimizer.name=$optimizer --set optimizer.weight_decay=1e-3 --set comm.sharded_update=true --set comm.shape=1gbit
    same $optimizer-2 $optimizer-network 5
  done
  in_parts 3 5 parts --ranks 2 --set optimizer.name=lamb --set optimizer.weight_decay=1e-3 --set comm.sharded_update=true
  same lamb-2 parts 5
}

case_compressed() {
  small="--set comm.compression_min_bytes=256"
  for method in bf16 int8 onebit topk:0.1 powersgd:2; do
    expect 0 $method --max-steps 6 --ranks 2 $small --set comm.compression=$method
    in_parts 4 6 $method-parts --ranks 2 $small --set comm.compression=$method
    same $method $method-parts 6
    says $method "compression $method: moved"
  done
  expect 0 ramp --max-steps 6 --ranks 2 $small --set comm.compression=topk:0.01 --set comm.compression_warmup_steps=1 --set comm.compression_ramp_steps=1
  expect 0 other --max-steps 2 --ranks 2 $small --set comm.compression=int8
  expect 2 other --max-steps 4 --ranks 2 $small --set comm.compression=topk:0.1 --resume
  says other 'comm.compression was "int8" and is now "topk:0.1"'
  expect 0 other --max-steps 4 --ranks 2 $small --set comm.compression=topk:0.1 --resume --resume-anyway comm.compression
  says other "dealt out anew"
  expect 0 other --max-steps 6 --ranks 2 $small --resume --resume-anyway comm.compression
  says other "is lost"
  expect 0 trial --ranks 2 $small --set comm.compression=auto:topk:0.1
  says trial "compression (on|off): dense blocks .* breaks even at"
  expect 2 wrong --ranks 2 --set comm.compression=zip
  says wrong "zip"
}
