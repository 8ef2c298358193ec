# Cases of training_test.sh. Networks written as layers.
# shellcheck shell=bash disable=SC2154

case_layers() {
  # Two inputs, two outputs, two losses: the same bits on one rank, on two, and through a resume; nearly the same on parts.
  "$tutti" data generate deepcam maps --height 48 --width 64 --train 8 --test 3 --seed 5 >generate.log || fail "cannot generate maps"
  config=$configs/layers.toml
  expect 0 one
  expect 0 two --ranks 2
  expect 0 part --max-steps 5
  expect 0 part --resume
  for other in two part; do same one $other 8; done
  expect 0 parts --ranks 4 --set parallel.spatial=2
  near one parts
  expect 0 narrow --set run.precision=bf16 --max-steps 2
  # The tasks follow from the fields, the losses from the weights.
  says one 'kind.iou [0-9.]* %, kind.accuracy [0-9.]* %, kind.loss [0-9.]*, copy.mae [0-9.]*, copy.loss'
  "$tutti" eval "$config" --weights one --json --logits out.npy --save-predictions seen >eval.json 2>eval.log || fail "eval"
  # Numbers are those of the data, whose 'min-max' is undone: the metric, the predictions, the truth. The loss, half of a mean, is of what is learned.
  python3 - eval.json <<'END' || fail "mae or loss are not what the saved files say: $(cat eval.json)"
import array, json, sys
found = json.load(open(sys.argv[1]))
read = lambda name: array.array("f", open(name, "rb").read()[128:])
y, t, stored = read("out.copy.npy"), read("seen/truth.copy.npy"), read("seen/data.npy")
channels, positions = 16, 48 * 64
near = lambda a, b: abs(a - b) <= 1e-4 * max(abs(a), abs(b))
mae = sum(abs(a - b) for a, b in zip(y, t)) / len(y)
# A channel goes to 0..1 and back in f32, so it is kept to some 2^-24 of its largest number.
largest = [max(map(abs, stored[c::channels])) for c in range(channels)]
back = all(abs(t[(s * channels + c) * positions + p] - stored[(s * positions + p) * channels + c]) <= 1e-6 * largest[c]
           for s in range(3) for c in range(channels) for p in range(0, positions, 97))
print(mae, back, file=sys.stderr)
sys.exit(not (near(found["copy.mae"], mae) and back and found["copy.loss"] < found["copy.mae"] and "'min-max' is undone" in found["units"][0]
              and json.load(open("out.copy.npy.json"))["attributes"]["undone"] == "min-max"))
END
  # All predictions are written, by eval and by infer.
  "$tutti" infer "$config" --weights one --split validation --output again.npy >infer.log 2>&1 || fail "infer"
  for name in kind copy; do
    cmp out.$name.npy again.$name.npy || fail "eval and infer differ in $name"
    [ -s seen/truth.$name.npy ] || fail "no truth of $name"
    cmp out.$name.npy seen/prediction.$name.npy || fail "the saved predictions of $name are others"
  done
  [ "$(stat -c %s out.copy.npy)" = $((128 + 3 * 16 * 48 * 64 * 4)) ] || fail "out.copy.npy has another size"
  # Also of files whose labels it does not know, one of the targets being an input: what the targets are is in the checkpoint.
  "$tutti" infer "$config" --weights one --input maps/validation --output files.npy >files.log 2>&1 || fail "infer of files with two targets"
  says files 'files.kind.npy: predictions of 3 samples'
  for name in kind copy; do cmp out.$name.npy files.$name.npy || fail "eval and infer of files differ in $name"; done
  # Of weights alone it follows from the training set, as long as that is there.
  cp one/checkpoints/best/weights.safetensors alone.safetensors
  "$tutti" infer "$config" --weights alone.safetensors --input maps/validation --output alone.npy >alone.log 2>&1 || fail "infer with weights alone"
  for name in kind copy; do cmp out.$name.npy alone.$name.npy || fail "infer with weights alone differs in $name"; done
  "$tutti" infer "$config" --weights alone.safetensors --input maps/validation --output o.npy --set 'data.train_files=["gone"]' >refused.log 2>&1 && fail "infer guesses two targets"
  says refused 'the network learned labels, data, and what these are is not known: give --weights of a run'
  # Batch norm by running averages: the same bits on two ranks, nearly the same on parts, others than by the batch.
  sed 's/^type = "batch_norm"/&\nstatistics = "running"/' "$config" >running.toml
  grep -q running running.toml || fail "no batch norm by running averages"
  config=running.toml
  expect 0 moving
  expect 0 moving_two --ranks 2
  same moving moving_two 8
  expect 0 moving_parts --ranks 4 --set parallel.spatial=2
  near moving moving_parts
  cmp moving/checkpoints/step_0000008/weights.safetensors one/checkpoints/step_0000008/weights.safetensors && fail "running averages change nothing"
  # Through a resume; and two replicas that share them have those of one batch.
  expect 0 moving_part --max-steps 5
  expect 0 moving_part --resume
  same moving moving_part 8
  expect 0 moving_batch --replicas 1 --set batch.local=2
  expect 0 moving_group --ranks 2 --set parallel.batchnorm_group_size=2
  near moving_batch moving_group
  # Frozen: the averages stay at 0 and 1, and there is nothing that replicas could share.
  sed 's/^statistics = "running"/&\nmomentum = 0/' running.toml >frozen.toml
  config=frozen.toml
  expect 0 frozen
  expect 0 frozen_two --ranks 2 --set parallel.batchnorm_group_size=2
  same frozen frozen_two 8
  expect 0 frozen_part --max-steps 5
  expect 0 frozen_part --resume
  same frozen frozen_part 8
  expect 0 frozen_parts --ranks 4 --set parallel.spatial=2
  near frozen frozen_parts
  python3 - frozen/checkpoints/step_0000008/weights.safetensors <<'END' || fail "the averages of a frozen batch norm moved"
import array, json, sys
data = open(sys.argv[1], "rb").read()
start = 8 + int.from_bytes(data[:8], "little")
tensors = json.loads(data[8:start])
of = {"running_mean": 0, "running_var": 1}
found = 0
for name, tensor in tensors.items():
    wanted = of.get(name.split(".")[-1])
    if wanted is None: continue
    begin, end = (start + at for at in tensor["data_offsets"])
    found += 1
    if set(array.array("f", data[begin:end])) != {wanted}: sys.exit(1)
sys.exit(found != 2)
END
  config=$configs/layers.toml
  # None of several predictions is written over an input: q.h5 stands for q.kind.h5 and q.again.h5.
  cat >single.toml <<'END'
[run]
epochs = 1
threads = 1
[data]
dataset = "arrays"
dir = "maps"
train_files = ["train"]
validation_files = ["validation"]
fields = ["data: from climate/data whole", "labels: from climate/labels_0 whole classes 3"]
input = ["data"]
target = ["labels"]
statistics = "maps/stats.h5"
transforms = ["data: permute 2 0 1, min-max", "labels: crop 48 64"]
[batch]
local = 1
[[model.layer]]
type = "conv"
name = "kind"
input = "data"
target = "labels"
kernel = 1
[[model.layer]]
type = "conv"
name = "again"
input = "data"
target = "labels"
kernel = 1
[plan]
measure = false
END
  config=single.toml expect 0 single --max-steps 1
  # What is learned follows from the masks. infer, which has none, has it from the checkpoint, and with weights alone from the training set.
  "$tutti" eval single.toml --weights single --logits told.npy >told.log 2>&1 || fail "eval of masks"
  cp single/checkpoints/step_0000001/weights.safetensors alone.safetensors
  for weights in single alone.safetensors; do
    "$tutti" infer single.toml --weights $weights --input maps/validation --output found.npy >found.log 2>&1 || fail "infer of masks with $weights"
    for name in kind again; do cmp told.$name.npy found.$name.npy || fail "eval and infer differ in $name with $weights"; done
  done
  cp "$(find maps/validation -name '*.h5' | head -n 1)" q.kind.h5
  cp q.kind.h5 kept.h5
  "$tutti" infer single.toml --weights single --input q.kind.h5 --output q.h5 >refused.log 2>&1 && fail "infer replaces its input"
  says refused 'q.kind.h5 is one of the files that --input names'
  cp one/checkpoints/best/weights.safetensors others.safetensors
  "$tutti" infer single.toml --weights others.safetensors --input q.kind.h5 --output q.h5 >refused.log 2>&1
  says refused 'q.kind.h5 is one of the files that --input names'  # known before the weights of another network are tried
  cmp q.kind.h5 kept.h5 || fail "infer has changed its input"
  "$tutti" infer single.toml --weights single --input q.kind.h5 --output r.h5 >written.log 2>&1 || fail "infer of one file"
  says written 'r.again.h5: predictions of 1 samples'
  # What names the rows of a file belongs to that file alone, and does not outlive it.
  [ "$(cat r.h5.files.txt)" = q.kind.h5 ] || fail "r.h5.files.txt names $(cat r.h5.files.txt)"
  "$tutti" infer single.toml --weights single --split validation --output r.h5 >written.log 2>&1 || fail "infer of a part"
  find "$PWD/maps/validation" -type f | sort | cmp - r.h5.files.txt || fail "r.h5.files.txt names $(cat r.h5.files.txt)"
  # A target that the second output reaches; one that there is none of.
  expect 0 reached --target 5000
  says reached 'done: target reached'
  expect 2 unknown --set run.metric=mae
  says unknown "there is no metric 'mae'; this task has kind.iou"
  # Numbers into which the network puts itself: what is learned follows from the field, also where infer has none.
  config=$here/../../examples/layers_autoencoder.toml
  small=(--set data.generate_train=64 --set data.generate_test=8 --set model.task=auto --set plan.measure=false --target 0 --threads 1)
  expect 0 auto "${small[@]}" --epochs 1
  says auto 'test mae [0-9.]*, loss'
  says auto "predictions of 'image' and errors as mae are in the units of the data: 'divide 255, normalise mean 0.2398 std 0.171' is undone"
  grep -q '"units":."predictions of .image. and errors as mae are in the units of the data' auto/record.jsonl || fail "the record does not name units"
  "$tutti" infer "$config" "${small[@]:0:8}" --threads 1 --weights auto --split test --output r.h5 >written.log 2>&1 || fail "infer of generated images: $(tail -n 3 written.log)"
  [ ! -e r.h5.files.txt ] || fail "r.h5.files.txt is of other predictions"
  says written 'r.h5.files.txt: removed'
  says written "'divide 255, normalise mean 0.2398 std 0.171' is undone"
}

# An example that is to reach its target, as its first lines say.
example() {
  config=$here/../../examples/$1.toml
  expect 0 run
  says run 'done: target reached'
}
case_example_layers_lattices() { example layers_lattices; }
case_example_layers_autoencoder() { example layers_autoencoder; }
