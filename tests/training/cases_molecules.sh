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
  cat >contacts.toml <<'END'
[run]
epochs = 1
threads = 1
replicas = 2
log_every = 1
metric = "loss"
[plan]
measure = false
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
  expect 0 part --max-steps 2
  expect 0 part --resume --max-steps 4
  expect 0 shared --ranks 4 --set parallel.spatial=2
  for other in two part; do same_weights one $other 4; done
  near one shared
  "$tutti" eval contacts.toml --weights one --save-predictions seen >eval.log 2>&1 || fail "cannot evaluate"
  [ -s seen/prediction.npy ] || fail "no predictions"
  expect 2 few --set 'data.transforms=["map: select CA of few.pdb, contacts 8"]'
  says few "'map' has 60 atoms, and few.pdb has 57"
  expect 1 cut --set 'data.train_files=["cut.dcd"]'
  says cut "cut.dcd: frame 23 .*'truncate -s [0-9]+' leaves the frames before it"
}
