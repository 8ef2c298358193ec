# Trajectories of molecules.

# Maps of contacts from a trajectory and a topology: the same bits on one rank, on two and after a resume, nearly the same on parts.
case_trajectory() {
  python3 - <<'END' || fail "cannot write a trajectory"
import math, struct
atoms, frames = 60, 24
record = lambda content: struct.pack("<i", len(content)) + content + struct.pack("<i", len(content))
numbers = [0] * 20
numbers[10], numbers[19] = 1, 24
file = record(b"CORD" + struct.pack("<20i", *numbers)) + record(struct.pack("<i", 1) + b" " * 80) + record(struct.pack("<i", atoms))
for f in range(frames):
    file += record(struct.pack("<6d", 50, 90, 50, 90, 90, 50))
    for axis in range(3):
        x = [1.2 * a * (axis == 0) + 6 * math.sin(0.2 * a * (axis + 1) + 0.1 * f) for a in range(atoms)]
        file += record(struct.pack(f"<{atoms}f", *x))
open("run.dcd", "wb").write(file)
open("cut.dcd", "wb").write(file[:-100])
lines = [f"ATOM  {a + 1:5}  {('N', 'CA', 'C')[a % 3]:<3} GLY A{a // 3 + 1:4}      11.000  12.000  13.000\n" for a in range(atoms)]
open("all.pdb", "w").write("".join(lines))
open("few.pdb", "w").write("".join(lines[:-3]))
END
  "$tutti" data inspect run.dcd >inspect.log || fail "cannot inspect run.dcd"
  says inspect 'coordinates .*24x60x3 .*24 frames of 60 atoms'
  config=contacts.toml
  cat >contacts.toml <<END
$(small_run 'epochs = 1' 'replicas = 2' 'metric = "loss"')
[data]
dataset = "arrays"
dir = "."
train_files = ["run.dcd"]
validation = 8
fields = ["map: from coordinates"]
target = "map"
transforms = ["map: select CA of all.pdb, contacts 8, crop 16 16"]
[loss]
pointwise = "bce_with_logits"
[batch]
local = 2
[[model.layer]]
type = "conv"
channels = 4
kernel = 3
pad = 1
activation = "relu"
[[model.layer]]
type = "conv"
kernel = 3
pad = 1
END
  expect 0 one
  expect 0 two --ranks 2
  in_parts 2 4 part
  expect 0 shared --ranks 4 --set parallel.spatial=2
  for other in two part; do same_weights one $other 4; done
  near one shared
  "$tutti" eval contacts.toml --weights one --save-predictions seen >eval.log 2>&1 || fail "cannot evaluate"
  [ -s seen/prediction.npy ] || fail "no predictions"
  expect 2 few --set 'data.transforms=["map: select CA of few.pdb, contacts 8"]'
  says few "'map' has 60 atoms, and .*few.pdb has 57"
  expect 1 cut --set 'data.train_files=["cut.dcd"]'
  says cut "cut.dcd: frame 23 .*'truncate -s [0-9]+' leaves the frames before it"
}

# A generated chain and the autoencoder of its contact maps: the same files from one thread and two, the same bits on one rank, on two, on four and after a resume; latent numbers beside the predictions.
case_protein() {
  for threads in 1 2; do
    "$tutti" data generate protein chain-$threads --residues 21 --train 1010 --test 6 --stride 5 --threads $threads >generate.log || fail "cannot generate a chain"
  done
  for file in train.h5 validation.h5 native.pdb; do cmp chain-1/$file chain-2/$file || fail "$file depends on threads"; done
  "$tutti" data generate protein chain-1 2>refused.log && fail "a set was replaced without --force"
  says refused 'train.h5 exists'
  "$tutti" data generate deepcam maps --residues 20 2>refused.log && fail "a flag of another set was taken"
  config=chain.toml
  cat >chain.toml <<END
$(small_run 'epochs = 1' 'replicas = 4')
[data]
dataset = "arrays"
dir = "chain-1"
train_files = ["train.h5"]
validation_files = ["validation.h5"]
fields = ["map: from coordinates axis 0", "q: from q axis 0"]
input = "map"
target = "map"
transforms = ["map: select CA residues 1-20 of chain-1/native.pdb, contacts 0.8"]
[model]
name = "protein-vae"
width = 4
[optimizer]
name = "rmsprop"
lr = 1e-3
[batch]
local = 2
END
  expect 0 one --max-steps 4
  expect 0 two --ranks 2 --max-steps 4
  expect 0 four --ranks 4 --max-steps 4
  in_parts 2 4 part
  for other in two four part; do same_weights one $other 4; done
  "$tutti" eval chain.toml --weights one --save-predictions seen --logits logits.npy --json >eval.json 2>eval.log || fail "cannot evaluate"
  for metric in f1 accuracy precision recall loss; do grep -q "\"$metric\"" eval.json || fail "no $metric: $(cat eval.json)"; done
  "$tutti" infer chain.toml --weights one --input chain-1/validation.h5 --output infer.npy >infer.log 2>&1 || fail "cannot infer"
  for name in z_mean z_log_var; do
    cmp seen/prediction.$name.npy logits.$name.npy || fail "eval writes two kinds of $name"
    cmp infer.$name.npy logits.$name.npy || fail "infer and eval differ in $name"
    [ "$(stat -c %s logits.$name.npy)" = $((128 + 6 * 3 * 4)) ] || fail "$name is not [6, 3]"
  done
  [ -s seen/q.npy ] && [ ! -e seen/truth.z_mean.npy ] || fail "wrong files: $(ls seen)"
}
