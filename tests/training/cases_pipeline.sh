# Cases of training_test.sh. Replicas whose layers several ranks have.
# shellcheck shell=bash disable=SC2154

# weights_alike CHECKPOINT CHECKPOINT: weights and state have the same names, and the same values up to rounding. The network compares
# nothing (smooth.toml), so sums in another order move a tensor by some 2^-24 a step, and its batch norms make of that a few 1e-6.
weights_alike() {
  python3 - "$1" "$2" <<'PY' || fail "the weights of $1 and $2 differ"
import array, json, struct, sys

def tensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: array.array("f", data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]]) for name, t in header.items()}

for file in ("weights", "state"):
    a, b = (tensors(f"{folder}/{file}.safetensors") for folder in sys.argv[1:])
    assert a.keys() == b.keys() and len(a) > 4, (file, a.keys() ^ b.keys())
    for name in a:
        difference = sum((x - y) ** 2 for x, y in zip(a[name], b[name])) ** 0.5
        norm = sum(x * x for x in a[name]) ** 0.5
        assert len(a[name]) == len(b[name]) and difference <= 1e-4 * norm + 1e-6, (file, name, difference, norm)
PY
}

case_pipeline() {
  config=$here/smooth.toml
  micro="--replicas 1 --set batch.accumulate=4 --set batch.local=3 --max-steps 4 --set checkpoint.every_steps=2"
  step=checkpoints/step_0000004
  expect 0 serial $micro
  for order in 1f1b gpipe; do
    expect 0 piped-$order $micro --ranks 2 --set parallel.pipeline=2 --set parallel.order=$order
    says piped-$order '2 stages take 4 micro-batches of a step by .*: a stage is idle for 20.0 %'
    near serial piped-$order
    weights_alike serial/$step piped-$order/$step
  done
  same_weights piped-1f1b piped-gpipe 4
  # Checkpoints are of the whole model, whoever reads them: without stages, with others, and the same ones.
  cp -r piped-1f1b halfway && rm -r halfway/$step
  for ranks in 1 3; do
    cp -r halfway resumed-$ranks
    expect 0 resumed-$ranks $micro --ranks $ranks --set parallel.pipeline=$ranks --resume
    weights_alike serial/$step resumed-$ranks/$step
  done
  expect 0 halfway $micro --ranks 2 --set parallel.pipeline=2 --resume
  same_weights piped-1f1b halfway 4
  "$tutti" eval "$config" --weights piped-1f1b --json >eval.json 2>eval.log || fail "eval of a pipeline's checkpoint"
  trained=$(grep '"event":"eval"' piped-1f1b/record.jsonl | tail -n 1 | grep -Eo '"loss":[0-9.e-]+' | cut -d: -f2)
  grep -Eo '"loss": [0-9.e-]+' eval.json | cut -d' ' -f2 | awk -v t="$trained" '{ d = $1 - t; if (d < 0) d = -d; if (!(d <= 1e-4 * t)) exit 1; ++n } END { if (n != 1) exit 1 }' ||
    fail "eval finds another loss than $trained: $(cat eval.json)"
  # Replicas with stages each.
  expect 0 replicas --replicas 2 --set batch.accumulate=2 --max-steps 4
  expect 0 replicas-piped --replicas 2 --ranks 4 --set parallel.pipeline=2 --set batch.accumulate=2 --max-steps 4
  near replicas replicas-piped
  weights_alike replicas/$step replicas-piped/$step
  # What is not built says so.
  expect 2 odd --ranks 3 --set parallel.pipeline=2
  says odd '3 ranks do not divide into replicas of 2 stages'
  expect 2 clipped --ranks 2 --set parallel.pipeline=2 --set optimizer.clip_norm=1
  says clipped 'parallel.pipeline = 2 goes without optimizer.clip_norm'
  expect 2 both --ranks 4 --set parallel.pipeline=2 --set parallel.spatial=2
  says both 'parallel.pipeline = 2 goes without parallel.spatial'
  "$tutti" plan "$config" --ranks 2 --replicas 1 --set parallel.pipeline=2 --set batch.accumulate=4 >plan.log 2>&1 || fail "tutti plan of stages"
  says plan 'stage 1: .* of the operations, .* parameters, sends .* KiB a micro-batch'
}

case_pipeline_language() {
  # The embedding is the output layer, too: both ends have it, and each other's gradient.
  config=$configs/language.toml
  for i in $(seq 1 120); do echo "the quick brown fox number $((i % 3)) jumps over the lazy dog"; done >text.txt
  micro="--replicas 1 --set batch.accumulate=4 --max-steps 4 --set run.eval_every=0 --set model.depth=3 --set optimizer.name=sgd --set optimizer.lr=0.1"
  expect 0 serial $micro
  expect 0 piped $micro --ranks 3 --set parallel.pipeline=3
  near serial piped
  weights_alike serial/checkpoints/step_0000004 piped/checkpoints/step_0000004
}
