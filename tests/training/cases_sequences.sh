# Cases of training_test.sh. Encoders of sequences.
# shellcheck shell=bash disable=SC2154

# What all configurations here share.
sequence_run="$(small_run 'epochs = 2' 'replicas = 4')"'
[batch]
local = 2
[optimizer]
name = "adamw"
lr = 1e-3
[model]
width = 16
heads = 2
depth = 1'

# Classes and numbers of records of different lengths, and the noise taken off each sample: the same bits on one rank, on two, on four and after a resume.
case_sequences() {
  "$tutti" data generate vibrations records --masses 3 --samples 32 --train 64 --test 16 --seed 5 >generate.log || fail "cannot generate records"
  "$tutti" data generate vibrations again --masses 3 --samples 32 --train 64 --test 16 --seed 5 --threads 1 >>generate.log || fail "cannot generate records again"
  for part in train validation; do cmp records/$part.h5 again/$part.h5 || fail "threads change records"; done
  local fields='"signals: from signals axis 0", "padding: from padding axis 0"' signals='"signals: permute 1 0, multiply 8"'
  record_set() { # NAME MODEL FIELD TARGET TRANSFORMS
    printf '%s\n%s\n[data]\ndataset = "arrays"\ndir = "records"\ntrain_files = ["train.h5"]\nvalidation_files = ["validation.h5"]\ninput = ["signals", "padding"]\nfields = [%s, "%s"]\ntarget = "%s"\ntransforms = [%s]\n' \
      "$sequence_run" "$2" "$fields" "$3" "$4" "$5" >$1.toml
  }
  local encoder='name = "sequence-encoder"
kernel = 8'
  record_set weak "$encoder" 'class: from class axis 0 classes 4' class "$signals"
  record_set lost "$encoder
task = \"regress\"" 'parameters: from parameters axis 0' parameters "$signals"
  record_set clean "$encoder
task = \"regress\"" 'clean: from clean axis 0' clean "$signals, \"clean: permute 1 0, multiply 8\""
  for set in weak lost clean; do
    config=$set.toml
    expect 0 one-$set --max-steps 4
    expect 0 two-$set --max-steps 4 --ranks 2
    expect 0 four-$set --max-steps 4 --ranks 4
    in_parts 2 4 part-$set
    for other in two four part; do same_weights one-$set $other-$set 4; done
  done
  "$tutti" infer clean.toml --weights one-clean --input records/validation.h5 --output clean.npy >infer.log 2>&1 || fail "cannot infer"
  says infer '16 samples'
  config=weak.toml
  expect 2 pieces --set model.kernel=5
  says pieces 'pieces of 5 do not fill sequences of 32 samples'
  expect 2 positions --set model.kernel=4
  says positions "'padding' has 4, and there are 8 positions"
  expect 2 turned --set 'data.transforms=[]'
  says turned 'pieces of 8 do not fill sequences of 3 samples'
  # Tokens: classes of chains of bases.
  python3 - <<'END' || fail "cannot write bases"
import os, random
random.seed(3)
bases = [[random.randrange(4) for _ in range(12)] for _ in range(64)]
def save(path, shape, values):
    header = repr({"descr": "|u1", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    open(path, "wb").write(b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header + bytes(values))
os.mkdir("bases")
save("bases/bases.npy", (64, 12), [b for chain in bases for b in chain])
save("bases/label.npy", (64,), [int(chain[0] > 1) for chain in bases])
END
  printf '%s\nname = "token-encoder"\n[data]\ndataset = "arrays"\ndir = "."\ntrain_files = ["bases"]\nvalidation = 16\nfields = ["bases: from bases classes A, C, G, T", "label: from label classes 2"]\n' \
    "$sequence_run" >bases.toml
  config=bases.toml
  expect 0 bases --max-steps 4
  expect 0 bases-two --max-steps 4 --ranks 2
  same_weights bases bases-two 4
}
