# Cases of training_test.sh. The course of a run: given weights, exit codes, dry runs, the record, early ends.
# shellcheck shell=bash disable=SC2154

case_tune() {
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
  says wrong "model.weights = '.*first': tensor 'linear.weight' has shape .*model.weights_except names"
  expect 2 wrong --set model.weights=first --set 'model.weights_except=["fc.*"]'
  says wrong "model.weights_except: nothing is called 'fc.*'; there are"
  expect 2 wrong --set 'model.freeze=["fc.*"]'
  says wrong "model.freeze: nothing is called 'fc.*'; there are conv1.weight"
  expect 2 wrong --set 'model.weights_except=["linear.*"]'
  says wrong "model.weights_except needs model.weights"
  "$tutti" train "$config" --dry-run "${tuned[@]}" >dry.log 2>&1 || fail "the dry run"
  "$tutti" train "$config" --dry-run --set model.weights=nowhere.safetensors >dry.log 2>&1 && fail "a dry run without the file"
  says dry "nowhere.safetensors"
}

case_codes() {
  expect 0 done --max-steps 1
  expect 2 unknown --set optimizer.learning_rate=1
  says unknown "optimizer.learning_rate"
  expect 3 missed --max-steps 1 --target 1 --set schedule.warmup_factor=0.5
  says missed 'schedule.warmup_factor = 0.5 has no effect'
  evaluates() { exits "$1" eval eval missed/config.toml --weights missed "${@:2}"; }
  evaluates 3
  grep -q 'has no effect' eval.log && fail "eval repeats a warning that is of training alone"
  says eval 'the target, accuracy 100.00 %, is not reached: the exit code is 3'
  evaluates 3 --json
  says eval '"target_reached": false'
  says eval '"checkpoint": "missed/checkpoints/step_0000001"'
  says eval '"step": 1'
  exits 2 shapes eval "$config" --set model.width=3 --weights missed
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
  expect 2 alone --set parallel.spatial=2
  says alone 'parallel.spatial = .2.: 2 ranks share a sample, and this job has 1: start a multiple of 2 ranks'
  # A run of such ranks goes on without sharing, where that is meant.
  expect 0 shared --ranks 2 --replicas 1 --set parallel.spatial=2 --max-steps 2
  expect 2 shared --replicas 1 --resume --max-steps 3
  says shared 'parallel.spatial was .2. and is now ..; .*--resume-anyway parallel.spatial'
  expect 0 shared --replicas 1 --resume --max-steps 3 --resume-anyway parallel.spatial
  printf 'include = "%s"\n[optimizer]\nname = "adam"\n' "$config" >adam.toml
  "$tutti" model show adam.toml >show.log 2>&1 || fail "model show of a configuration"
  says show 'optimizer state [(]m, v[)]'
}

case_dry() {
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
  refuses 1 '/clean/absent does not exist' --set data.dataset=cifar10 --data-dir absent
  place=/proc/x refuses 1 "cannot make the output folder '/proc/x'"
  place="$config/run" refuses 1 "cannot make the output folder '$config/run'"
  refuses 2 'batch.global = 7 does not divide by 2 replicas' --set batch.global=7 --set batch.local=0 --ranks 2
  refuses 2 'fewer than one global batch of 100000' --set batch.global=100000 --set batch.local=0
  refuses 2 'optimizer.lr must be a finite number' --lr inf
  refuses 2 'run.replicas = 1 is less than the 2 ranks' --ranks 2 --replicas 1
  refuses 2 "must be a whole number from 1 to 1048576, is 'two'" --ranks two
  refuses 2 'model.classes = 2 allows' --set model.classes=2
  refuses 1 'no valid checkpoint in .*/nowhere.' --resume=nowhere
  search=/nowhere refuses 2 'mpirun, which is not in PATH' --ranks 2
  # Three ranks of a launcher, two of them on the first node, which has samples of its own.
  OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 refuses 2 \
    'as many replicas on each node, but they have 2, 1' --set data.shuffle=shard --replicas 3
  [ -z "$(ls -A .)" ] || fail "a dry run left $(ls -A .)"
  cd .. && expect 0 out/run --max-steps 1 && mv out clean/ && cd clean || exit 1
  refuses 2 "all else is right, but 'out/run' holds a run: continue it with --resume"
  says ../dry '# batch .* samples: 2 replicas'
  says ../dry 'has been tried and is right but for the output folder'
  refuses 2 'batch.global = 7 does not divide' --set batch.global=7 --set batch.local=0 --ranks 2
  refuses 0 'resume out/run/checkpoints/step_0000001, at step 1' --resume
  refuses 2 'optimizer.lr was 0.05 and is now 0.3' --resume --lr 0.3
  "$tutti" plan "$config" --output-dir out/run --resume --seed 9 >../plan.log 2>&1 && fail "a plan of what train refuses"
  says ../plan 'run.seed was 1 and is now 9'
  # Images for minutes are not made: neither by a dry run nor before a folder is refused.
  refuses 0 '1000000 training' --fresh --set data.generate_train=1000000
  "$tutti" train "$config" --output-dir out/run --set data.generate_train=1000000 >../held.log 2>&1 && fail "two runs in a folder"
  says ../held "'out/run' holds a run"
  refuses 0 'output out/run' --fresh
}

case_dry_samples() {
  # A dry run reads samples as training does: of a field without 'classes' nothing else says what its labels are.
  mkdir raw && head -c 64 /dev/zero >raw/x.bin && printf '\000\001\002\011' >raw/y.bin
  printf '[[array]]\nname = "x"\nfile = "x.bin"\ntype = "u8"\nshape = [4, 1, 4, 4]\n' >raw/set.toml
  printf '[[array]]\nname = "y"\nfile = "y.bin"\ntype = "u8"\nshape = [4]\n' >>raw/set.toml
  cat >raw.toml <<'END'
[data]
dataset = "arrays"
dir = "raw"
train_files = ["set.toml"]
validation_files = ["set.toml"]
fields = ["image: from x", "label: from y"]
transforms = ["image: divide 255"]
[model]
task = "classify"
[[model.layer]]
type = "flatten"
[[model.layer]]
type = "dense"
outputs = 3
[batch]
global = 4
END
  config=raw.toml
  expect 2 labels --dry-run
  says labels "the field .label. holds the label 9, the network has outputs for classes 0 to 2"
  # Of ranks that rehearse side by side one reads.
  OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 \
    "$tutti" train raw.toml --output-dir other --dry-run >other.log 2>&1 || fail "rank 1 of a dry run: $(cat other.log)"
  [ -s other.log ] && fail "rank 1 of a dry run says $(cat other.log)"
  printf '\002' | dd of=raw/y.bin bs=1 seek=3 conv=notrunc 2>/dev/null
  expect 0 sound --dry-run
  says sound '8 have been: the first of each part'
}

case_nan() {
  expect 0 run --max-steps 2 --ranks 2
  cp -r run/checkpoints before
  expect 1 run --max-steps 6 --ranks 2 --resume --lr 1e30 --resume-anyway optimizer.lr
  says run 'rank [01]/2 on .*the loss is .* at step [0-9]+, replica [01]: .*(layer|parameter) '
  diff -r run/checkpoints/step_0000002 before/step_0000002 || fail "the earlier checkpoint was changed"
  says run 'the last checkpoint, of step 2, is from before it'
  grep '"event":"run_stop"' run/record.jsonl | tail -n 1 | grep -q '"status":"failed","reason":".*the loss is.*"error":"NumericError"' || fail "the record does not name the failure"
  expect 1 none --max-steps 6 --lr 1e30
  says none 'there is no checkpoint yet'
}

case_record() {
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
  awk 'length > 130 && !/ run reference loops/' run.log | grep . && fail "long lines"
  # One damaged line costs that line, not the tables.
  sed -i '4s/.*/damaged/' all/run/record.jsonl
  expect 0 all/run --max-steps 9 --resume
  says run 'CSV tables go on without the 1 line.s. of the record that cannot be read'
  [ "$(wc -l <all/run/steps.csv)" -eq 9 ] || fail "steps.csv lost more than the damaged line"
  "$tutti" eval "$config" --weights all/run/checkpoints --logits logits.npy >eval.log 2>&1 || fail "eval cannot read the checkpoint"
  [ "$(wc -c <logits.npy)" -gt 160 ] || fail "logits are too short"
  # The run's number of threads gives the same bits, so it is the default; another is said.
  grep -q '"event":"machine".*"other_work":' all/run/record.jsonl || fail "the record does not say what the machine did beside the run"
  expect 0 thread --max-steps 2 --threads 1
  predict() { env -u OMP_NUM_THREADS "$tutti" eval "$config" --weights thread "$@" >eval.log 2>&1 || fail "eval $*"; }
  predict --logits own.npy --set run.threads=0
  says eval '1 thread.s. a rank, as the run of these weights had: the same bits'
  predict --logits one.npy --threads 1
  cmp own.npy one.npy || fail "eval takes other threads than the run had"
  predict --threads 2
  says eval '2 thread.s. a rank, where the run of these weights had 1: the last bits'
  # A benchmark of a network says which batch it takes where no flag does, before it is silent for a while.
  "$tutti" bench step --model lenet --steps 1 --warmup 0 --no-measure >bench.log 2>&1 || fail "bench step"
  says bench 'lenet, batch 128 a rank .--batch takes another.: compiling'
  "$tutti" bench step --model lenet --steps 1 --warmup 0 --no-measure --json 2>bench.log | grep -q '"other_work":' || fail "bench does not say what other work took"
}

case_early() {
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
}
