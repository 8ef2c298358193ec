# Cases of training_test.sh. Ranks that share samples.
# shellcheck shell=bash disable=SC2154

# near_numbers FILE FILE: predictions, the same up to rounding
near_numbers() {
  python3 -c 'import sys, array
a, b = (open(f, "rb").read() for f in sys.argv[1:])
x, y = array.array("f", a[128:]), array.array("f", b[128:])
sys.exit(a[:128] != b[:128] or len(x) == 0 or len(x) != len(y) or any(not abs(p - q) <= 1e-4 * (1 + abs(p)) for p, q in zip(x, y)))' "$1" "$2" ||
    fail "the predictions in $2 are not those in $1"
}

case_parts() {
  # Ranks that share samples: they evaluate as one rank does, whatever the loss is divided by and whoever shares statistics; a death and
  # a resume change nothing; a study compares them with ranks that do not.
  "$tutti" data generate cosmoflow volumes --side 32 --train 8 --test 3 --seed 5 >generate.log || fail "cannot generate volumes"
  "$tutti" data generate deepcam cells --height 32 --width 64 --train 8 --test 3 --seed 5 >>generate.log || fail "cannot generate cells"
  # alike FILE FILE: lines of a name and a number, up to rounding
  alike() {
    paste "$1" "$2" | awk '{ d = $2 - $4; if (d < 0) d = -d; if ($1 != $3 || !(d <= 1e-4 * $2)) exit 1; ++n } END { if (n < 3) exit 1 }' ||
      fail "$1 and $2: $(paste "$1" "$2")"
  }
  measures() {
    local name=$1
    shift
    "$tutti" eval "$config" --weights "parts-$set" --json "$@" >$name.json 2>$name.log || fail "eval $* of $set"
    grep -Eo '"(samples|mae|iou|accuracy|loss)": [0-9.e-]+' $name.json >$name.eval
  }
  for set in volumes cells; do
    config=$configs/$set.toml
    # What training says of its last weights is what others find.
    expect 0 parts-$set --ranks 2 --replicas 1 --set parallel.spatial=2 --max-steps 4
    grep '"event":"eval"' parts-$set/record.jsonl | tail -n 1 | grep -Eo '"(samples|mae|iou|accuracy|loss)":[0-9.e-]+' | sed 's/:/: /' | sort >trained.eval
    measures one --set parallel.spatial=1
    sort one.eval >sorted.eval
    alike sorted.eval trained.eval
    hows=("--ranks 2 --spatial 2" "--ranks 4 --spatial 2,2")
    [ $set = cells ] || hows+=("--ranks 2" "--ranks 4 --spatial 2" "--ranks 3 --spatial 3")
    for how in "${hows[@]}"; do
      measures other $how
      alike one.eval other.eval
    done
    exits 2 odd eval "$config" --weights parts-$set --ranks 3 --spatial 2
    says odd '2 ranks share a sample, and this job has 3'
    "$tutti" infer "$config" --weights parts-$set --split validation --output $set-one.npy >infer.log 2>&1 || fail "infer of $set"
    "$tutti" infer "$config" --weights parts-$set --split validation --output $set-two.npy --ranks 4 --spatial 2 >>infer.log 2>&1 || fail "infer of $set on parts"
    says infer '2 rank.s. predict; the other 2 have nothing to do'
    near_numbers $set-one.npy $set-two.npy
  done
  # A weighted loss that is divided by the weights of all parts' labels.
  weighted="--epochs 1 --replicas 1 --set batch.local=2 --set loss.mean_over=weights"
  expect 0 weighted $weighted
  expect 0 weighted-2x2 $weighted --ranks 4 --set parallel.spatial=2,2
  near weighted weighted-2x2
  # Two replicas of two parts each have the statistics of one batch.
  expect 0 batch --epochs 1 --replicas 1 --set batch.local=2
  expect 0 group --epochs 1 --ranks 4 --set parallel.spatial=2 --set parallel.batchnorm_group_size=2
  near batch group
  expect 2 group-odd --ranks 4 --set parallel.spatial=2 --set parallel.batchnorm_group_size=3
  says group-odd '2 replicas on ranks of their own are no groups of 3'
  # The norm by which a gradient is clipped is that of the whole sample's.
  config=$configs/volumes.toml
  clipped="--replicas 1 --max-steps 3 --set batch.local=2 --set optimizer.clip_norm=0.1"
  expect 0 clipped $clipped
  expect 0 clipped-2x2 $clipped --ranks 4 --set parallel.spatial=2,2
  for name in clipped clipped-2x2; do
    grep '"event":"step"' $name/record.jsonl | grep -Eo '"grad_norm":[0-9.e-]+' | sed 's/:/: /' >$name.norms
  done
  alike clipped.norms clipped-2x2.norms
  config=$configs/cells.toml
  # A rank that dies.
  long="--ranks 2 --replicas 1 --set parallel.spatial=2 --epochs 100000 --set run.eval_every=0"
  train died $long --set checkpoint.every_steps=8 --max-steps 100000 &
  job=$!
  wait_for died/checkpoints/step_0000008 $job
  program=$(pgrep -P $job) launcher=$(pgrep -P "$(pgrep -P $job)")
  [ -n "$launcher" ] || fail "no launcher below $program"
  kill -KILL "$(pgrep -P "$launcher" | tail -n 1)"
  wait $job && fail "the run lived on without a rank"
  steps=$(($(latest_step died) + 8))
  expect 0 died $long --resume --max-steps $steps
  expect 0 lived $long --max-steps $steps
  same lived died $steps
  # One table of ranks with samples of their own and of ranks that share them.
  config=$configs/volumes.toml
  "$tutti" study "$config" --ranks 1,2,2/2 --repeats 1 --replicas 0 --epochs 2 --target 5 --output-dir scaled >study.log 2>&1 || fail "no study of parts"
  says study '^ *2/2[*]? +1 +1 +1 '
  says study '2/2[*]? +[0-9.]+ +[0-9.]+'
  [ -s scaled/runs/n0002-s2-r1/record.jsonl ] || fail "no run of two parts"
  [ "$(cut -d, -f1 scaled/study.csv | tr '\n' ' ')" = "ranks 1 2 2 " ] || fail "the sizes of the study: $(cat scaled/study.csv)"
  exits 2 odd study "$config" --ranks 3/2 --replicas 0 --output-dir odd
  says odd '3/2 are no groups of 2 ranks that share each sample'
}

case_residual() {
  # x + convolution of x, without a batch norm between: the sum must not be made in place of an x that other slabs and parts still read.
  "$tutti" data generate deepcam maps --height 48 --width 64 --train 4 --test 3 --seed 5 >generate.log || fail "cannot generate maps"
  cat >residual.toml <<'END'
[run]
epochs = 1
[data]
dataset = "arrays"
dir = "maps"
train_files = ["train"]
validation_files = ["validation"]
fields = ["data: from climate/data whole", "labels: from climate/labels_0 whole classes 3"]
input = ["data"]
target = ["labels"]
statistics = "maps/stats.h5"
transforms = ["data: permute 2 0 1, min-max"]
[batch]
local = 1
[plan]
measure = false
[[model.layer]]
type = "conv"
name = "first"
channels = 16
kernel = 3
pad = 1
activation = "relu"
[[model.layer]]
type = "conv"
name = "branch"
channels = 16
kernel = 3
pad = 1
[[model.layer]]
type = "add"
input = ["first", "branch"]
[[model.layer]]
type = "conv"
name = "kind"
kernel = 1
END
  config=residual.toml expect 0 trained --max-steps 1 --set plan.slabs=1 --threads 1
  predict() {
    local name=$1
    shift
    "$tutti" infer residual.toml --weights trained --split validation --output $name.npy "$@" >$name.log 2>&1 || fail "infer $*: $(tail -n 3 $name.log)"
  }
  predict whole --set plan.slabs=1 --threads 1
  predict slabs --set plan.slabs=4 --threads 2
  predict parts --ranks 2 --spatial 2 --set plan.slabs=4
  predict tiles --ranks 4 --spatial 2,2 --set plan.slabs=2
  for other in slabs parts tiles; do near_numbers whole.npy $other.npy; done
}
