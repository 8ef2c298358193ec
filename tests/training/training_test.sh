#!/bin/bash
# training_test.sh PROGRAM CASE FOLDER: one case of README.md's table. Prints what went wrong and exits 1.
set -u
tutti=$1 case=$2 folder=$3
here=$(cd "$(dirname "$0")" && pwd)
config=$here/tiny.toml
# shellcheck source-path=SCRIPTDIR
. "$here/runs.sh"

# tensor_lines FILE: of a .safetensors file, a line "BEGIN BYTES NAME" for each tensor
tensor_lines() {
  local header
  header=$(od -An -tu8 -N8 "$1" | tr -d ' ')
  tail -c +9 "$1" | head -c "$header" | grep -Eo '"[^"]+":\{"dtype":"F32","shape":\[[0-9,]*\],"data_offsets":\[[0-9]+,[0-9]+\]' |
    sed -E 's/"([^"]+)":.*"data_offsets":\[([0-9]+),([0-9]+)\]/\2 \3 \1/' |
    while read -r begin end name; do echo "$((8 + header + begin)) $((end - begin)) $name"; done
}

# kept CHECKPOINT: what its ranks keep, with checksums: each replica's statistics, whichever rank had them, and what is a rank's own
kept() {
  local files name begin bytes file
  files=$(find "$1/ranks" -name '*.safetensors' | sort -V)
  for name in $(tensor_lines "$1/ranks/0.safetensors" | sed -En 's,^[0-9]+ [0-9]+ (replicas/),\1,p'); do
    echo "$name $(for file in $files; do
      read -r begin bytes _ < <(tensor_lines "$file" | grep " $name\$")
      tail -c +$((begin + 1)) "$file" | head -c "$bytes"
    done | cksum)"
  done
  for file in $files; do
    tensor_lines "$file" | grep ' compression' | while read -r begin bytes name; do
      echo "$name $(tail -c +$((begin + 1)) "$file" | head -c "$bytes" | cksum)"
    done
  done
}

# same NAME NAME STEP: byte for byte the same weights and state, and the same kept by ranks
same() {
  local step
  step=$(printf 'step_%07d' "$3")
  same_weights "$1" "$2" "$3"
  kept "$1/checkpoints/$step" >one.kept
  kept "$2/checkpoints/$step" >two.kept
  [ -s one.kept ] && cmp one.kept two.kept || fail "what the ranks of $1 and $2 keep differs at step $3"
}

# same_weights NAME NAME STEP: where ranks keep nothing of their own
same_weights() {
  local step
  step=$(printf 'step_%07d' "$3")
  for file in weights state; do
    cmp "$1/checkpoints/$step/$file.safetensors" "$2/checkpoints/$step/$file.safetensors" || fail "$file of $1 and $2 differ at step $3"
  done
}

# near NAME NAME: the loss of their first step up to rounding, of four steps roughly: an update that divides by
# the gradient's size makes more of a rounding
near() {
  for name in "$1" "$2"; do
    grep '"event":"step"' "$name/record.jsonl" | head -n 4 | grep -Eo '"loss":[^,}]*' | cut -d: -f2 >"$name.losses"
    [ "$(wc -l <"$name.losses")" = 4 ] || fail "$name has no four steps"
  done
  paste "$1.losses" "$2.losses" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (!(d <= (NR == 1 ? 1e-5 : 1e-2) * $1)) exit 1 }' ||
    fail "the losses of $1 and $2: $(paste "$1.losses" "$2.losses")"
  for name in "$1" "$2"; do
    grep '"event":"eval"' "$name/record.jsonl" | head -n 1 | grep -Eo '"loss":[^,}]*' | cut -d: -f2 >"$name.losses"
    [ -s "$name.losses" ] || fail "$name has not evaluated"
  done
  paste "$1.losses" "$2.losses" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (!(d <= 2e-2 * $1)) exit 1 }' ||
    fail "the first evaluations of $1 and $2: $(paste "$1.losses" "$2.losses")"
}

# losses NAME: of its steps, epochs and evaluations, as the record has them
losses() {
  grep -E '"event":"(step|epoch|eval)"' "$1/record.jsonl" | grep -Eo '"(event|step|loss|train_loss)":[^,}]*'
}

# tested NAME: what its last use of the test set found
tested() {
  grep '"event":"test"' "$1/record.jsonl" | tail -n 1 | grep -Eo '"(step|weights_step|samples|accuracy|loss)":[^,}]*' | tr '\n' ' '
}

# wait_for FILE PID: until it exists, as long as the run lives
wait_for() {
  for _ in $(seq 600); do
    [ -e "$1" ] && return
    kill -0 "$2" 2>/dev/null || fail "the run ended before $1 was there"
    sleep 0.05
  done
  fail "$1 did not appear"
}

# goes_on STUDY PID WHAT: until the study's run on 2 ranks goes on from its checkpoint
goes_on() {
  until grep -q '"resume_step":[1-9]' "$1/runs/n0002-r1/record.jsonl"; do
    kill -0 "$2" 2>/dev/null || fail "$3 was begun anew"
    [ ! -e "$1/runs/n0002-r1.attempt-1" ] || fail "$3 was set aside"
    sleep 0.05
  done
}

# idx_set FOLDER SIDE CLASSES: both splits in MNIST's format, 54 images each of SIDE x SIDE pixels
idx_set() {
  mkdir -p "$1"
  local split
  for split in train t10k; do
    {
      printf "\\0\\0\\10\\3\\0\\0\\0\\66\\0\\0\\0\\$(printf %o "$2")\\0\\0\\0\\$(printf %o "$2")"
      head -c $((54 * $2 * $2)) /dev/zero
    } >"$1/$split-images-idx3-ubyte"
    {
      printf '\0\0\10\1\0\0\0\66'
      local i
      for ((i = 0; i < 54; i++)); do printf "\\$(printf %o $((i % $3)))"; done
    } >"$1/$split-labels-idx1-ubyte"
  done
}

case $case in
  ranks)
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
    ;;
  groups)
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
    says wrong "optimizer.decay: nothing is called 'fc.weight'; there are linear.weight"
    expect 2 wrong --set 'optimizer.rates=["linear.weight"]'
    says wrong "optimizer.rates: 'linear.weight' is not a pattern, a colon and a number"
    expect 2 wrong --set 'optimizer.rates=["linear.weight: 0"]'
    says wrong "must be above 0; model.freeze leaves"
    ;;
  tune)
    expect 0 first --max-steps 3
    # Another number of classes, the last layer and the third stage are trained.
    tuned=(--set model.weights=../tune/first --set 'model.weights_except=["linear.*"]' --set model.classes=12 --set 'model.freeze=["conv1.*", "bn1.*", "layer[12].*"]')
    expect 0 one "${tuned[@]}" --max-steps 6
    says one "weights of step 3"
    says one "their own first values keep linear.weight, linear.bias"
    tensor_lines one/checkpoints/step_0000006/state.safetensors | grep -q 'layer3.0.conv1.weight.momentum' || fail "layer3 has no momentum"
    tensor_lines one/checkpoints/step_0000006/state.safetensors | grep -Eq ' (conv1|bn1|layer[12])[.]' && fail "frozen parameters have a state"
    # What is frozen has the bits that were given; the rest has moved.
    for tensor in conv1.weight layer2.0.bn2.bias layer3.0.conv1.weight; do
      for run in first/checkpoints/step_0000003 one/checkpoints/step_0000006; do
        read -r begin bytes _ < <(tensor_lines $run/weights.safetensors | grep " $tensor\$")
        tail -c +$((begin + 1)) $run/weights.safetensors | head -c "$bytes" | cksum
      done | uniq | wc -l >count
      [ "$(cat count)" = $([ $tensor = layer3.0.conv1.weight ] && echo 2 || echo 1) ] || fail "$tensor: the given value and that after training"
    done
    expect 0 two "${tuned[@]}" --max-steps 6 --ranks 2
    same one two 6
    expect 0 shards "${tuned[@]}" --max-steps 6 --ranks 2 --set comm.sharded_update=true
    same one shards 6
    # A resume does not need the file.
    expect 0 parts "${tuned[@]}" --max-steps 4
    mv first elsewhere
    expect 0 parts "${tuned[@]}" --max-steps 6 --resume
    same one parts 6
    expect 0 parts "${tuned[@]}" --set 'model.freeze=["conv1.*", "bn1.*"]' --max-steps 8 --resume --resume-anyway model.freeze
    says parts "state begins at zero for what was frozen until now: layer2"
    expect 1 lost "${tuned[@]}" --max-steps 1
    mv elsewhere first
    expect 2 wrong --set model.weights=first --set model.classes=12
    says wrong "model.weights = 'first': tensor 'linear.weight' has shape .*model.weights_except names"
    expect 2 wrong --set model.weights=first --set 'model.weights_except=["fc.*"]'
    says wrong "model.weights_except: nothing is called 'fc.*'; there are"
    expect 2 wrong --set 'model.freeze=["fc.*"]'
    says wrong "model.freeze: nothing is called 'fc.*'; there are conv1.weight"
    expect 2 wrong --set 'model.weights_except=["linear.*"]'
    says wrong "model.weights_except needs model.weights"
    "$tutti" train "$config" --dry-run "${tuned[@]}" >dry.log 2>&1 || fail "the dry run"
    "$tutti" train "$config" --dry-run --set model.weights=nowhere.safetensors >dry.log 2>&1 && fail "a dry run without the file"
    says dry "nowhere.safetensors"
    ;;
  accumulate)
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
    config=$here/volumes.toml
    volumes=(--set data.dir="$folder/volumes" --set batch.global=0 --set batch.local=1 --max-steps 2)
    "$tutti" data generate cosmoflow volumes --side 32 --train 8 --test 2 --seed 5 >generate.log 2>&1 || fail "generating volumes"
    expect 0 dropout-four "${volumes[@]}" --replicas 4
    expect 0 dropout-two "${volumes[@]}" --replicas 2 --set batch.accumulate=2
    same_weights dropout-four dropout-two 2
    config=$here/tiny.toml
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
    ;;
  average)
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
    ;;
  clip)
    # norms NAME: of its steps and epochs, as the record has them
    norms() { grep -Eo '"grad_norm":[^,}]*' "$1/record.jsonl"; }
    last=checkpoints/step_0000004
    for name in sgd adamw lars lamb; do
      clip=(--set optimizer.name=$name --set optimizer.eps=1e-6 --set 'optimizer.exclude=["norm"]' --set optimizer.clip_norm=0.5 --replicas 4)
      expect 0 $name-one "${clip[@]}" --max-steps 4
      norms $name-one >one.norms
      [ "$(grep -Ec ':[0-9]' one.norms)" = 5 ] || fail "four steps and an epoch have no norms"
      expect 0 $name-two "${clip[@]}" --max-steps 4 --ranks 2
      expect 0 $name-four "${clip[@]}" --max-steps 4 --ranks 4 --set comm.sharded_update=true
      for other in two four; do
        same $name-one $name-$other 4
        norms $name-$other >other.norms
        cmp one.norms other.norms || fail "the norms of $name on $other ranks"
      done
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
    expect 0 packed-parts "${packed[@]}" --max-steps 2
    expect 0 packed-parts "${packed[@]}" --max-steps 4 --resume
    same packed packed-parts 4
    expect 2 more-one "${more[@]}" --set optimizer.clip_norm=1 --max-steps 5 --resume
    says more-one "optimizer.clip_norm was 0.5 and is now 1"
    expect 2 wrong --set optimizer.clip_norm=-1
    says wrong "optimizer.clip_norm must be at least 0"
    # Gradients whose squares do not fit: an error before the weights are used.
    expect 1 long --set optimizer.clip_norm=1 --set model.name=mlp --set model.width=0 --set 'model.hidden=[16]' --set optimizer.lr=1e18 --max-steps 9
    says long "the norm of the gradient is infinite at step|is not finite|the loss is"
    ;;
  precisions)
    expect 0 one --precision bf16 --set model.width=16 --max-steps 3
    expect 0 two --precision bf16 --set model.width=16 --max-steps 3 --ranks 2
    same one two 3
    ;;
  replay)
    expect 0 measured --set plan.measure=true --max-steps 4 --ranks 2
    expect 0 again --set plan.measure=true --max-steps 4 --set plan.choices_from=measured/checkpoints
    same measured again 4
    expect 1 parts --set plan.choices_from=nowhere
    says parts "plan.choices_from: no valid checkpoint in 'nowhere'"
    ;;
  exchange)
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
    ;;
  sharded)
    for optimizer in sgd adamw lars lamb; do
      for ranks in 2 3; do
        expect 0 $optimizer-$ranks --max-steps 5 --replicas $ranks --set optimizer.name=$optimizer --set optimizer.weight_decay=1e-3
        expect 0 $optimizer-$ranks-sharded --max-steps 5 --replicas $ranks --ranks $ranks --set optimizer.name=$optimizer --set optimizer.weight_decay=1e-3 --set comm.sharded_update=true
        same $optimizer-$ranks $optimizer-$ranks-sharded 5
      done
      expect 0 $optimizer-network --max-steps 5 --ranks 2 --set optimizer.name=$optimizer --set optimizer.weight_decay=1e-3 --set comm.sharded_update=true --set comm.shape=1gbit
      same $optimizer-2 $optimizer-network 5
    done
    expect 0 parts --max-steps 3 --ranks 2 --set optimizer.name=lamb --set optimizer.weight_decay=1e-3 --set comm.sharded_update=true
    expect 0 parts --max-steps 5 --ranks 2 --set optimizer.name=lamb --set optimizer.weight_decay=1e-3 --set comm.sharded_update=true --resume
    same lamb-2 parts 5
    ;;
  compressed)
    small="--set comm.compression_min_bytes=256"
    for method in bf16 int8 onebit topk:0.1 powersgd:2; do
      expect 0 $method --max-steps 6 --ranks 2 $small --set comm.compression=$method
      expect 0 $method-parts --max-steps 4 --ranks 2 $small --set comm.compression=$method
      expect 0 $method-parts --max-steps 6 --ranks 2 $small --set comm.compression=$method --resume
      same $method $method-parts 6
      says $method "compression $method: moved"
    done
    expect 0 ramp --max-steps 6 --ranks 2 $small --set comm.compression=topk:0.01 --set comm.compression_warmup_steps=1 --set comm.compression_ramp_steps=1
    expect 0 other --max-steps 2 --ranks 2 $small --set comm.compression=int8
    expect 2 other --max-steps 4 --ranks 2 $small --set comm.compression=topk:0.1 --resume
    says other 'comm.compression was "int8" and is now "topk:0.1"'
    expect 0 other --max-steps 4 --ranks 2 $small --set comm.compression=topk:0.1 --resume --resume-anyway comm.compression
    says other "dealt out anew"
    expect 0 trial --ranks 2 $small --set comm.compression=auto:topk:0.1
    says trial "compression (on|off): dense blocks .* breaks even at"
    expect 2 wrong --ranks 2 --set comm.compression=zip
    says wrong "zip"
    ;;
  resume)
    expect 0 whole --max-steps 13
    expect 0 parts --max-steps 3
    expect 0 parts --max-steps 10 --resume
    expect 0 parts --max-steps 13 --resume --ranks 2
    same whole parts 13
    # What a resume warns of is said once, not by each rank.
    expect 0 told --max-steps 2 --ranks 2
    rm told.log
    expect 0 told --max-steps 3 --ranks 2 --epochs 4 --threads 2 --set optimizer.lr=0.1 --resume-anyway optimizer.lr --resume -q
    for what in 'the schedule spans run.epochs' 'run.threads was 1 and is now 2' 'resumed although changed: optimizer.lr'; do
      [ "$(grep -c "$what" told.log)" = 1 ] || fail "not once: $what"
    done
    expect 2 parts --max-steps 14 --resume --replicas 3
    says parts 'run.replicas was 2 and is now 3; .*on any number of ranks from 1 to 2'
    # As many replicas as before, without being told.
    expect 0 many --max-steps 2 --ranks 3 --set run.replicas=0 --set batch.local=2
    expect 0 many --max-steps 4 --set run.replicas=0 --set batch.local=2 --resume
    says many '3 replica.* on 1 rank'
    ;;
  asked)
    # What a process has chosen or been told for itself is not kept as if it were the run's.
    expect 0 run --ranks 2 --max-steps 2 -q --threads 0
    grep -Eq '^threads = 0 ' run/config.toml && grep -Eq '^log_level = "info" ' run/config.toml || fail "config.toml keeps threads or log level of the process"
    [ ! -s run.log ] || fail "-q is not quiet"
    "$tutti" train run/config.toml --resume --max-steps 3 >>run.log 2>&1 || fail "no resume"
    says run 'done: 3 steps'
    # What was asked for is kept.
    expect 0 told --max-steps 1 --threads 1
    grep -Eq '^threads = 1 ' told/config.toml || fail "config.toml does not keep the threads that were asked for"
    ;;
  limits)
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
    [ "$(grep -c 'nothing to do' run.log)" = 2 ] || fail "nothing to do, and -q is silent about it"
    expect 0 reached --epochs 1 --target 0.001
    says reached 'toml --resume --target X [(]X above 0[.][0-9]*, or 0 for none[)]'
    # Where nothing is done, config.toml stays that of what was done.
    cp reached/config.toml before.toml
    expect 0 reached --target 0.001 --epochs 2 --resume
    cmp reached/config.toml before.toml || fail "a resume that did nothing has changed config.toml"
    ! grep -q '"changes":[[]"' reached/record.jsonl || fail "a resume that did nothing has changes in the record"
    # It stands where it stood, and so do its clocks, but for what two starts without a step take.
    last_clocks() { grep '"event":"run_stop"' reached/record.jsonl | tail -n "$1" | head -n 1 | sed -E 's/.*"wall_seconds":([0-9.e-]+),"train_seconds":([0-9.e-]+),"eval_seconds":([0-9.e-]+),"checkpoint_seconds":([0-9.e-]+).*/\1 \2 \3 \4/'; }
    echo "$(last_clocks 2) $(last_clocks 1)" | awk '{ exit !($5 >= $1 && $6 >= $2 && $7 == $3 && $8 == $4 && $3 > 0 && $4 > 0 && $6 - $2 <= $5 - $1 + 1e-6) }' ||
      fail "the clocks went from $(last_clocks 2) to $(last_clocks 1)"
    ;;
  changed)
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
    ;;
  disagree)
    # Ranks that were given different configurations end at once, with the key's name.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    for change in optimizer.lr=0.3 run.seed=7 run.epochs=5; do
      # One command for both ranks: mpirun of Open MPI 5.0.7 crashes where there are two.
      mpirun --oversubscribe -n 2 bash -c '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || set -- "$@" --set "$0"; exec "$@"' "$change" \
        "$tutti" train "$config" --output-dir "run-${change#*=}" >run.log 2>&1
      [ $? -eq 2 ] || fail "ranks that differ in $change"
      says run "${change%=*}"
    done
    ;;
  folder)
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
    "$tutti" eval "$config" --weights run >damaged.log 2>&1
    code=$?
    [ $code -eq 1 ] || fail "eval where all checkpoints are damaged: exit code $code, expected 1"
    says run 'no checkpoint in .run/checkpoints. is valid'
    [ -e run/checkpoints/step_0000003 ] || fail "the damaged checkpoint is gone"
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
    ;;
  moved)
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
    ;;
  best)
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
    ;;
  full)
    # A disk without room for a checkpoint: training goes on, the end is an error, the earlier ones stay. A limit on file sizes stands for it.
    size=$(stat -c %s "$tutti")
    expect 0 run --max-steps 2
    [ "$size" -gt 0 ] || fail "no program"
    (ulimit -f 20; "$tutti" train "$config" --output-dir run --resume --set checkpoint.every_steps=1 --max-steps 4 >>run.log 2>&1)
    [ $? -eq 1 ] || fail "a last checkpoint that cannot be written is no success"
    says run 'no checkpoint of step 3: .*weights.safetensors: cannot be written.*the last checkpoint, of step 2'
    tail -n 1 run/record.jsonl | grep -q '"status":"failed"' || fail "the record does not say that the run failed"
    expect 0 run --resume --max-steps 4
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
    ;;
  killed)
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
    ;;
  stopped)
    expect 0 whole
    "$tutti" train "$config" --output-dir parts --set checkpoint.every_steps=2 >>parts.log 2>&1 &
    job=$!
    wait_for parts/checkpoints/step_0000002 $job
    kill -TERM $job
    wait $job
    code=$?
    [ $code -eq 75 ] || fail "exit code $code after SIGTERM, expected 75"
    says parts 'signal 15 with a checkpoint at step'
    # It is asked every fourth step and after each evaluation (docs/cli.md).
    step=$(grep '"event":"run_stop"' parts/record.jsonl | grep -o '"steps":[0-9]*' | cut -d: -f2)
    [ $((step % 4)) -eq 0 ] || fail "stopped at step $step, which is no fourth one"
    expect 0 parts --resume
    same whole parts 24
    "$tutti" train "$config" --output-dir asked --epochs 100000 --set run.eval_every=0.001 --set checkpoint.every_steps=2 >>asked.log 2>&1 &
    job=$!
    wait_for asked/checkpoints/step_0000002 $job
    kill -TERM $job
    wait $job
    code=$?
    [ $code -eq 75 ] || fail "exit code $code after SIGTERM, expected 75"
    step=$(grep '"event":"run_stop"' asked/record.jsonl | grep -o '"steps":[0-9]*' | cut -d: -f2)
    [ -d "asked/checkpoints/$(printf step_%07d "$step")" ] || fail "no checkpoint of step $step"
    grep '"event":"eval"' asked/record.jsonl | tail -n 1 | grep -q "\"step\":$step," || fail "step $step was not evaluated before the stop"
    ;;
  codes)
    expect 0 done --max-steps 1
    expect 2 unknown --set optimizer.learning_rate=1
    says unknown "optimizer.learning_rate"
    expect 3 missed --max-steps 1 --target 1
    evaluates() {
      local wanted=$1 code
      shift
      "$tutti" eval missed/config.toml --weights missed "$@" >eval.log 2>&1
      code=$?
      [ $code -eq "$wanted" ] || fail "eval $*: exit code $code, expected $wanted"
    }
    evaluates 3
    says eval 'the target, accuracy 100.00 %, is not reached: the exit code is 3'
    evaluates 3 --json
    says eval '"target_reached": false'
    says eval '"checkpoint": "missed/checkpoints/step_0000001"'
    says eval '"step": 1'
    "$tutti" eval "$config" --set model.width=3 --weights missed >shapes.log 2>&1
    code=$?
    [ $code -eq 2 ] || fail "eval of another model: exit code $code, expected 2"
    says shapes 'has shape [0-9x]+, the model needs [0-9x]+. .*tutti eval missed/config.toml --weights missed'
    evaluates 0 --set run.target=0.001
    says eval 'the target, accuracy 0.10 %, is reached'
    # The target is of the whole test set.
    evaluates 0 --samples 4
    evaluates 0 --split train
    grep -q 'run.target' eval.log && fail "eval compares the training images with the target"
    expect 2 replicas --ranks 2 --replicas 1 --max-steps 1
    says replicas 'R replicas run on 1 to R ranks'
    expect 2 batch --set batch.global=7 --set batch.local=0
    says batch 'batch.global = 7 does not divide'
    ;;
  samples)
    # From generated files to a metric, whatever a sample is: on one rank and on two, through an end and a resume, the same bits.
    "$tutti" data generate cosmoflow volumes --side 32 --train 8 --test 3 --seed 5 >generate.log || fail "cannot generate volumes"
    "$tutti" data generate deepcam maps --height 48 --width 64 --train 8 --test 3 --seed 5 >>generate.log || fail "cannot generate maps"
    for set in volumes maps; do
      config=$here/$set.toml
      "$tutti" data verify "$([ $set = maps ] && echo deepcam || echo cosmoflow)" $set >verify.log || fail "$set are not sound"
      "$tutti" data inspect $set >inspect.log || fail "cannot inspect $set"
      says inspect 'A configuration to start from'
      expect 0 one-$set
      expect 0 two-$set --ranks 2
      expect 0 part-$set --max-steps 5
      expect 0 part-$set --resume --max-steps 8
      for other in two part; do
        [ $set = maps ] && same one-$set $other-$set 8
        same_weights one-$set $other-$set 8
      done
    done
    # Ranks that share each sample: nearly what one rank learns, the same bits each time and after a resume.
    for set in volumes maps; do
      config=$here/$set.toml
      parts="--ranks 4 --set parallel.spatial=2"
      expect 0 parts-$set $parts
      expect 0 cut-$set $parts --max-steps 3
      expect 0 cut-$set $parts --resume --max-steps 8
      same_weights parts-$set cut-$set 8
      expect 0 wide-$set --ranks 4 --replicas 1 --set parallel.spatial=2,2 --set batch.local=2 --max-steps 2
      near one-$set parts-$set
    done
    expect 2 parts-odd --ranks 3 --set parallel.spatial=2
    says parts-odd '3 ranks are no replicas of 2 parts each'
    expect 2 parts-few --ranks 2 --replicas 2 --set parallel.spatial=2
    says parts-few '2 replicas of 2 part.s. take 4 ranks, this job has 2'
    expect 0 normed --ranks 2 --set parallel.batchnorm_group_size=2 --max-steps 2
    says one-volumes 'validation mae 0[.][0-9]*, loss'
    says one-maps 'validation iou [0-9.]* %, accuracy [0-9.]* %, loss'
    # Of mae lower is better: any is below 2, none below 0.001.
    config=$here/volumes.toml
    expect 0 reached --target 2
    says reached 'done: target reached'
    grep -q '"metrics":{.*"mae":' reached/record.jsonl || fail "the record has no mae"
    grep -q '"target":{"metric":"mae","value":2.0,"higher_is_better":false}' reached/record.jsonl || fail "the record does not say which way the target lies"
    expect 3 missed --target 0.001
    says missed 'target_missed: mae'
    expect 0 other --set run.metric=loss --target 5 --epochs 1
    expect 2 unknown --set run.metric=accuracy
    says unknown "there is no metric 'accuracy'; this task has mae, loss"
    # A file that has been damaged since is named.
    truncate -s -10 volumes/train/univ_00000003.tfrecord
    expect 1 damaged
    says damaged 'univ_00000003.tfrecord'
    ;;
  arrays)
    # Files that a configuration describes: the bits of the data sets that are known by name, on two ranks and through a resume, too.
    "$tutti" data generate cosmoflow volumes --side 32 --train 8 --test 3 --seed 5 >generate.log || fail "cannot generate volumes"
    "$tutti" data generate deepcam maps --height 48 --width 64 --train 8 --test 3 --seed 5 >>generate.log || fail "cannot generate maps"
    described=(--set data.dataset=arrays --set data.train_files=train --set data.validation_files=validation)
    volumes=("${described[@]}" --set 'data.fields=["x: from x as i16 ? ? ? 4", "y: from y"]')
    maps=("${described[@]}" --set data.statistics=maps/stats.h5
      --set 'data.fields=["data: from climate/data whole", "labels: from climate/labels_0 whole classes 3"]')
    for set in volumes maps; do
      config=$here/$set.toml
      declare -n own=$set
      expect 0 named-$set --max-steps 4
      expect 0 own-$set "${own[@]}" --max-steps 4
      expect 0 two-$set "${own[@]}" --max-steps 4 --ranks 2
      expect 0 part-$set "${own[@]}" --max-steps 2
      expect 0 part-$set "${own[@]}" --resume --max-steps 4
      # Ranks that share a sample read their rows of it alone.
      expect 0 shared-$set "${own[@]}" --max-steps 4 --ranks 4 --set parallel.spatial=2
      near named-$set shared-$set
      for other in own two part; do same_weights named-$set $other-$set 4; done
      says own-$set '8 samples in 8 files'
      # What inspect prints of a folder that nobody knows is a configuration that trains.
      mv $set/train $set/files
      "$tutti" data inspect $set/files >inspected.toml || fail "cannot inspect $set/files"
      config=inspected.toml
      expect 0 inspected-$set --max-steps 2 --set plan.measure=false --set run.threads=1
    done
    # Statistics that are computed are those that the generator has written.
    config=$here/maps.toml
    mv maps/files maps/train
    expect 0 stats0 "${maps[@]}" --max-steps 1
    printf '[data]\ndataset = "arrays"\ndir = "maps"\ntrain_files = ["train"]\nfields = ["data: from climate/data whole"]\ntransforms = ["data: permute 2 0 1"]\n' >stats.toml
    "$tutti" data stats stats.toml --output stats.json >stats.log || fail "cannot compute statistics"
    expect 0 stats1 "${maps[@]}" --set data.statistics=stats.json --max-steps 1
    same_weights stats0 stats1 1
    # The path is the same, what lies there is not.
    expect 0 drifts "${maps[@]}" --set data.statistics=stats.json --max-steps 1
    awk '/"max"/ {seen = 1} seen && !done && sub(/[0-9]+[.]/, "9999999.") {done = 1} {print}' stats.json >changed.json
    cmp -s changed.json stats.json && fail "the statistics are as before"
    mv changed.json stats.json
    expect 2 drifts "${maps[@]}" --set data.statistics=stats.json --resume --max-steps 2
    expect 2 outputs "${maps[@]}" --set model.classes=2
    says outputs "the field 'labels' has 3 classes"
    config=$here/volumes.toml
    expect 1 gone "${volumes[@]}"
    says gone 'data.train_files: .*volumes/train does not exist'
    expect 2 unsaid "${described[@]}"
    says unsaid 'needs data.fields and data.train_files'
    mkfifo pipe.npy
    expect 1 pipe --set data.dataset=arrays --set data.dir=. --set data.train_files=pipe.npy --set 'data.fields=["x: from array"]'
    says pipe 'pipe.npy: expected a file, found a pipe'
    ;;
  data)
    train missing --set data.dataset=cifar10 --data-dir absent && fail "a missing folder was accepted"
    says missing 'absent'
    mkdir cut
    "$tutti" data generate lattices cut --train 48 --test 8 >cut.log || fail "cannot generate"
    file=$(ls cut/*train*)
    # A data set is not overwritten unasked, not even a half of it.
    before=$(sha256sum "$file")
    "$tutti" data generate lattices cut --train 0 --test 4 --seed 2 >again.log 2>&1
    code=$?
    [ $code -eq 2 ] || fail "data generate over a data set: exit code $code, expected 2"
    says again 'cut/lattices-train.bin exists: .*--force'
    "$tutti" data generate lattices cut --train 48 --test 8 --force >>again.log 2>&1 || fail "--force is refused"
    [ "$(sha256sum "$file")" = "$before" ] || fail "the same seed gave another file"
    truncate -s -1000 "$file"
    expect 1 truncated --data-dir cut
    says truncated "$(basename "$file")"
    # What it advises can be typed.
    says truncated "'tutti data generate lattices cut --force'"
    "$tutti" data verify lattices cut --json >sound.log 2>&1 && fail "verify accepts a cut file"
    grep -q BAD sound.log && fail "verify --json speaks of lines that JSON does not have"
    says sound 'see the files that are not "sound"'
    expect 2 model-classes --set model.classes=2
    says model-classes 'record [0-9]+ has label 2, but model.classes = 2 allows 0 to 1'
    expect 2 data-classes --set data.classes=4
    says data-classes 'record [0-9]+ has label 4, but data.classes = 4 allows 0 to 3'
    grep -q 'step' model-classes.log data-classes.log && fail "trained on labels that the model does not have"
    # 27 classes in files of MNIST's format, as EMNIST's letters have them.
    idx_set letters 12 27
    expect 2 letters --set data.dataset=mnist --data-dir letters --set batch.global=8
    says letters 'set data.classes = 27'
    expect 0 letters --set data.dataset=mnist --data-dir letters --set batch.global=8 --set data.classes=27 --max-steps 1
    idx_set wide 20 10
    cp letters/train-* wide/
    expect 1 sizes --set data.dataset=mnist --data-dir wide --set batch.global=8 --set data.classes=27
    says sizes 'u8 image 1x12x12, .* u8 image 1x20x20'
    "$tutti" data verify mnist wide --classes 27 >verify.log 2>&1 && fail "verify accepts splits of different sizes"
    says verify 'images of 20x20 pixels, but the training images have 12x12'
    ;;
  dry)
    # A dry run says what the run would say, with the same exit code, and leaves nothing behind.
    mkdir clean && cd clean || exit 1
    refuses() {
      local wanted=$1 message=$2
      shift 2
      env PATH="${search:-$PATH}" "$tutti" train "$config" --output-dir "${place:-out/run}" --dry-run "$@" >../dry.log 2>&1
      local code=$?
      cd .. && [ $code -eq "$wanted" ] || fail "dry run with $*: exit code $code, expected $wanted"
      says dry "$message"
      cd clean || exit 1
    }
    refuses 0 '# batch 8 samples: 2 replicas of 4' --set batch.global=8 --set batch.local=0 --ranks 2
    TUTTI_OPTIMZER_LR=3 refuses 0 'TUTTI_OPTIMZER_LR means nothing, did you mean .TUTTI_OPTIMIZER_LR'
    refuses 2 "there is no model 'resnt'" --set model.name=resnt
    refuses 1 'absent does not exist .looked for .*/clean/absent' --set data.dataset=cifar10 --data-dir absent
    place=/proc/x refuses 1 "cannot make the output folder '/proc/x'"
    place="$config/run" refuses 1 "cannot make the output folder '$config/run'"
    refuses 2 'batch.global = 7 does not divide by 2 replicas' --set batch.global=7 --set batch.local=0 --ranks 2
    refuses 2 'fewer than one global batch of 100000' --set batch.global=100000 --set batch.local=0
    refuses 2 'optimizer.lr must be a finite number' --lr inf
    refuses 2 'run.replicas = 1 is less than the 2 ranks' --ranks 2 --replicas 1
    refuses 2 "must be a whole number from 1 to 1048576, is 'two'" --ranks two
    refuses 2 'model.classes = 2 allows' --set model.classes=2
    refuses 1 'no valid checkpoint in .nowhere.' --resume=nowhere
    search=/nowhere refuses 2 'mpirun, which is not in PATH' --ranks 2
    # Three ranks of a launcher, two of them on the first node, which has samples of its own.
    OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 refuses 2 \
      'as many replicas on each node, but they have 2, 1' --set data.shuffle=shard --replicas 3
    [ -z "$(ls -A .)" ] || fail "a dry run left $(ls -A .)"
    cd .. && expect 0 out/run --max-steps 1 && mv out clean/ && cd clean || exit 1
    refuses 2 "holds a run: continue it with --resume"
    refuses 0 'resume out/run/checkpoints/step_0000001, at step 1' --resume
    refuses 2 'optimizer.lr was 0.05 and is now 0.3' --resume --lr 0.3
    refuses 0 'output out/run' --fresh
    ;;
  nan)
    expect 0 run --max-steps 2 --ranks 2
    cp -r run/checkpoints before
    expect 1 run --max-steps 6 --ranks 2 --resume --lr 1e30 --resume-anyway optimizer.lr
    says run 'rank [01]/2 on .*the loss is .* at step [0-9]+, replica [01]: .*(layer|parameter) '
    diff -r run/checkpoints/step_0000002 before/step_0000002 || fail "the earlier checkpoint was changed"
    says run 'the last checkpoint, of step 2, is from before it'
    grep '"event":"run_stop"' run/record.jsonl | tail -n 1 | grep -q '"status":"failed","reason":".*the loss is.*"error":"NumericError"' || fail "the record does not name the failure"
    expect 1 none --max-steps 6 --lr 1e30
    says none 'there is no checkpoint yet'
    ;;
  record)
    expect 0 all/run --max-steps 8 --set checkpoint.every_epochs=1
    "$tutti" study --collect --output-dir all >study.log 2>&1 || fail "study cannot read the record"
    [ -s all/report.html ] || fail "no report"
    for part in '"run_id":"2' '"git":"[^"]'; do grep -q "$part" all/run/record.jsonl || fail "run_start has no $part"; done
    grep -q '"metric":null' all/run/record.jsonl && fail "a field that is never measured"
    # The last line counts from the process's start, up to what rounding takes; the record from the first step.
    start=$(sed -nE 's/.* ([0-9.]+) s from start.*/\1/p' run.log) all=$(sed -nE 's/.* s training, ([0-9.]+) s in all.*/\1/p' run.log)
    wall=$(grep '"event":"run_stop"' all/run/record.jsonl | sed -E 's/.*"wall_seconds":([0-9.]+).*/\1/')
    awk -v start="$start" -v wall="$wall" -v all="$all" 'BEGIN { exit !(start > 0 && wall > 0 && all >= start + wall - 0.06) }' || fail "$all s in all, of $start s before the first step and $wall s after it"
    [ "$(wc -l <all/run/steps.csv)" -eq 9 ] || fail "steps.csv has not 8 steps"
    awk 'length > 130' run.log | grep . && fail "long lines"
    # One damaged line costs that line, not the tables.
    sed -i '4s/.*/damaged/' all/run/record.jsonl
    expect 0 all/run --max-steps 9 --resume
    says run 'CSV tables go on without the 1 damaged line'
    [ "$(wc -l <all/run/steps.csv)" -eq 9 ] || fail "steps.csv lost more than the damaged line"
    "$tutti" eval "$config" --weights all/run/checkpoints --logits logits.npy >eval.log 2>&1 || fail "eval cannot read the checkpoint"
    [ "$(wc -c <logits.npy)" -gt 160 ] || fail "logits are too short"
    ;;
  study)
    # tiny.toml fixes two replicas, so the global batch stays: --mode strong.
    study() {
      "$tutti" study "$config" --mode strong --repeats 1 --set checkpoint.every_steps=1 --output-dir "$@" >>study.log 2>&1
    }
    ends() {
      local wanted=$1 code
      shift
      study "$@"
      code=$?
      [ $code -eq "$wanted" ] || fail "study $*: exit code $code, expected $wanted"
    }
    ends 0 missed --ranks 1,2 --target 1 --epochs 1
    says study 'target not reached, best test accuracy'
    says study 'was missed by some runs: 1 of 1 on 1 rank, 1 of 1 on 2 ranks'
    grep -q 'starting 2 ranks' study.log && fail "the runs' own lines are shown"
    [ -s missed/runs/n0002-r1/console.log ] || fail "no log of a run"
    for file in report.html study.json study.csv runs.csv; do [ -s missed/$file ] || fail "no $file"; done
    grep -q '"compiler"' missed/runs/n0001-r1/record.jsonl || fail "the record does not name the compiler"
    ends 3 missed --ranks 1,2 --target 1 --epochs 1 --require-target
    says study 'kept from before: target not reached'
    ends 0 missed --ranks 1,2 --target 1 --epochs 1 --set comm.timeout_s=120 --set checkpoint.keep=9
    ends 2 missed --ranks 1,2 --target 1 --epochs 2
    says study 'missed/runs/n0001-r1 was finished with another configuration .run.epochs: 1 there, 2 now.'
    ends 2 shared --ranks 1 --set checkpoint.dir=one
    says study 'checkpoint.dir = "one", but each run of a study keeps its checkpoints in its own folder'
    ends 2 shared --ranks 1 --resume
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
    wait $job
    code=$?
    [ $code -eq 1 ] || fail "exit code $code after a rank was killed"
    tail -n 1 $record | grep -q '"status":"failed"' || fail "the record does not say that the run failed"
    study lost --ranks 2 --epochs 100000 &
    job=$!
    goes_on lost $job "a failed run with a checkpoint"
    kill -TERM "$(pgrep -P $job)"
    wait $job
    code=$?
    [ $code -eq 75 ] || fail "exit code $code of the study that went on, expected 75"
    # Asked to stop it ends with 75; a second start finishes.
    study stopped --ranks 2 --epochs 400 &
    job=$!
    wait_for stopped/runs/n0002-r1/checkpoints/step_0000002 $job
    kill -TERM "$(pgrep -P $job)"
    wait $job
    code=$?
    [ $code -eq 75 ] || fail "exit code $code after SIGTERM, expected 75"
    says study 'Runs were asked to stop'
    # What was stopped has not failed.
    "$tutti" study --collect --output-dir stopped >collect.log 2>&1
    code=$?
    [ $code -eq 75 ] || fail "exit code $code of --collect over a stopped run, expected 75"
    says collect 'enters no number: stopped early, with a checkpoint'
    ! grep -q failed collect.log || fail "a stopped run is called failed"
    # As after a time-out: a key that changes neither results nor times is no reason to begin anew.
    study stopped --ranks 2 --epochs 400 --set comm.timeout_s=120 &
    job=$!
    record=stopped/runs/n0002-r1/record.jsonl
    goes_on stopped $job "a stopped run, after comm.timeout_s was raised,"
    kill -TERM "$(pgrep -P $job)"
    wait $job
    code=$?
    [ $code -eq 75 ] || fail "exit code $code of the stopped study that went on, expected 75"
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
    ;;
  splits)
    # A validation set judges, the test set is used once: the same on one rank, on two and after a resume in mid-epoch.
    held="--set data.validation=0.25 --set run.eval_every=1"
    expect 0 one $held
    expect 0 two $held --ranks 2
    expect 0 parts $held --max-steps 8
    [ -z "$(tested parts)" ] && fail "a run that has ended has no test"
    expect 0 parts $held --max-steps 0 --resume
    for other in two parts; do
      same one $other 18
      [ "$(tested one)" = "$(tested $other)" ] || fail "the tests of one and $other differ: $(tested one); $(tested $other)"
    done
    [ "$(grep -c '"event":"test"' one/record.jsonl)" = 1 ] || fail "the test set was not used once"
    says one 'epoch 3.00: validation accuracy'
    best=$(readlink one/checkpoints/best)
    says one "test set: accuracy .* [(]8 samples, weights of step $((10#${best#step_}))[)]"
    # A resume that finds nothing to do does not use it again; one that was killed before does.
    expect 0 one $held --resume
    [ "$(grep -c '"event":"test"' one/record.jsonl)" = 1 ] || fail "the test set was used twice"
    sed -i '/"event":"test"/d' one/record.jsonl
    expect 0 one $held --resume
    [ "$(tested one)" = "$(tested two)" ] || fail "a test that was lost is not made up for: $(tested one)"
    "$tutti" eval "$config" --weights one --set data.validation=0.25 >eval.log 2>&1 || fail "eval of the test set"
    says eval "lattices test: 8 samples, accuracy $(tested one | sed 's/.*"accuracy":\([0-9.]*\).*/\1/' | awk '{ printf "%.2f", $1 * 100 }') %"
    "$tutti" eval "$config" --weights one --set data.validation=12 --split validation >eval.log 2>&1 || fail "eval of the validation set"
    says eval 'lattices validation: 12 samples'
    "$tutti" eval "$config" --weights one --split validation >eval.log 2>&1 && fail "eval of a validation set that is not there"
    says eval 'has no validation set of its own: data.validation takes one'
    expect 2 other $held --set data.validation=1.5
    expect 2 other $held --set data.validation=48
    says other 'takes 48 of the 48 training samples'
    expect 2 one $held --set data.split_seed=2 --epochs 4 --resume
    ;;
  early)
    # An improvement of 0.5 comes once at most: the third evaluation is the second without one.
    early="--set run.eval_every=1 --set run.patience=2 --set run.min_improvement=0.9 --epochs 9"
    expect 0 whole $early
    says whole 'done: stopped early: no better accuracy for 2 evaluations'
    expect 0 two $early --ranks 2
    expect 0 parts $early --max-steps 18
    expect 0 parts $early --max-steps 0 --resume
    for other in two parts; do same whole $other 24; done
    expect 0 whole $early --resume
    says whole 'nothing to do: stopped early'
    expect 3 missed $early --target 1
    says missed 'target_missed: stopped early: no better accuracy for 2 evaluations; accuracy'
    expect 0 whole $early --set run.patience=3 --resume
    says whole 'no better accuracy for 3 evaluations'
    # A rate that falls on a plateau falls alike on any number of ranks and after a resume.
    plateau="--set run.eval_every=1 --set run.min_improvement=0.9 --set schedule.name=plateau --set schedule.patience=1 --set schedule.gamma=0.5"
    expect 0 falls $plateau
    says falls 'no better accuracy: the learning rate falls to 0.025'
    expect 0 falls-two $plateau --ranks 2
    expect 0 falls-parts $plateau --max-steps 19
    expect 0 falls-parts $plateau --max-steps 0 --resume
    for other in two parts; do same falls falls-$other 24; done
    [ "$(grep '"event":"step"' falls/record.jsonl | grep -o '"lr":[0-9.]*' | uniq | tr '\n' ' ')" = '"lr":0.05 "lr":0.025 ' ] || fail "other rates than expected"
    expect 2 falls $plateau --set run.eval_every=0.5 --epochs 4 --resume
    says falls 'run.eval_every was 1.0 and is now 0.5'
    expect 2 none --set run.patience=2
    says none 'run.patience counts evaluations: it needs run.eval_every above 0'
    ;;
  infer)
    # What infer predicts for files without labels is what eval predicts for them with labels.
    "$tutti" data generate cosmoflow volumes --side 32 --train 8 --test 3 >generate.log || fail "cannot generate volumes"
    "$tutti" data generate deepcam maps --height 48 --width 64 --train 8 --test 3 >>generate.log || fail "cannot generate maps"
    for set in volumes maps; do
      config=$here/$set.toml
      expect 0 run-$set --max-steps 1 --set plan.measure=true
      "$tutti" eval "$config" --weights run-$set --logits $set-eval.npy --save-predictions seen-$set >eval-$set.log 2>&1 || fail "eval of $set"
      "$tutti" infer "$config" --weights run-$set --input $set/validation --output $set-infer.npy >infer-$set.log 2>&1 || fail "infer of $set"
      "$tutti" infer "$config" --weights run-$set --split validation --output $set-split.npy --set plan.measure=true >>infer-$set.log 2>&1 || fail "infer of a part of $set"
      "$tutti" infer "$config" --weights run-$set --input "$set/validation/*0[012].*" --output $set.nc >>infer-$set.log 2>&1 || fail "infer of a pattern"
      # All of them take the kernels that the run has measured.
      for other in infer split; do cmp $set-eval.npy $set-$other.npy || fail "eval and infer of $set differ"; done
      cmp $set-eval.npy seen-$set/prediction.npy || fail "the saved predictions of $set are others"
      head -c 4 seen-$set/sample_0002.png | grep -q PNG || fail "no picture of $set"
      "$tutti" data inspect $set.nc >inspect.log 2>&1 || fail "cannot inspect $set.nc"
      says inspect 'prediction'
    done
    for file in seen-volumes/scatter.png seen-volumes/x.npy seen-volumes/y.npy seen-maps/data.npy seen-maps/labels.npy; do
      [ -s $file ] || fail "no $file"
    done
    "$tutti" infer "$here/maps.toml" --weights run-maps --input maps/validation --labels --output labels.h5 >labels.log 2>&1 || fail "infer of labels"
    refused() {
      local what=$1
      shift
      "$tutti" infer "$@" >refused.log 2>&1
      local code=$?
      [ $code -eq 2 ] || fail "infer $*: exit code $code, expected 2"
      says refused "$what"
    }
    refused 'predicts numbers, not classes' "$here/volumes.toml" --weights run-volumes --input volumes/validation --labels --output o.npy
    refused 'should end in .npy, .h5 or .nc' "$here/maps.toml" --weights run-maps --input maps/validation --output o.csv
    refused 'give --input or --split' "$here/maps.toml" --weights run-maps --output o.npy
    [ -z "$(ls ./*.part 2>/dev/null)" ] || fail "parts of files are left"
    ;;
  *)
    fail "no case $case"
    ;;
esac
