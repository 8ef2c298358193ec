# Patterns and images of electron microscopes.
# shellcheck shell=bash disable=SC2154

# What all configurations here share.
microscopy_run="$(small_run 'epochs = 2' 'replicas = 4')"'
[batch]
local = 2
[optimizer]
lr = 0.01'

# Potentials by FC-DenseNet and columns of atoms by layers: the same bits on one rank, on two, of the columns on four, and after a resume.
case_microscopy() {
  "$tutti" data generate cbed patterns --side 32 --train 70 --test 8 --seed 5 >generate.log || fail "cannot generate patterns"
  "$tutti" data generate stem images --side 32 --train 16 --test 8 --seed 5 >>generate.log || fail "cannot generate images"
  "$tutti" data verify cbed patterns >verify.log || fail "patterns are not sound"
  says verify 'cbed-00000001.h5 .* 6 records'
  "$tutti" data inspect patterns >patterns.log || fail "cannot inspect patterns"
  says patterns 'parameters .*f32'
  says patterns 'dataset = "cbed"'
  "$tutti" data inspect images >images.log || fail "cannot inspect images"
  says images 'dataset = "stem"'
  cat >patterns.toml <<END
$microscopy_run
[data]
dataset = "cbed"
dir = "patterns"
target = "potential"
transforms = ["image: multiply 30, log1p", "potential: divide 30"]
[model]
name = "fc-densenet56"
task = "regress"
classes = 1
[loss]
pointwise = "huber"
END
  cat >images.toml <<END
$microscopy_run
[data]
dataset = "stem"
dir = "images"
target = "columns"
transforms = ["image: flip x y", "columns: flip x y"]
[model]
task = "segment"
[[model.layer]]
type = "conv"
channels = 8
kernel = 3
pad = 1
activation = "relu"
[[model.layer]]
type = "conv"
channels = 2
kernel = 1
END
  for set in patterns images; do
    config=$set.toml
    expect 0 one-$set --max-steps 2
    expect 0 two-$set --max-steps 2 --ranks 2
    in_parts 1 2 part-$set
    for other in two part; do same_weights one-$set $other-$set 2; done
  done
  expect 0 four-images --max-steps 2 --ranks 4
  same_weights one-images four-images 2
}

# The pages of a TIFF file are samples.
case_tiff() {
  python3 - <<'END' || fail "cannot write TIFF stacks"
import os, struct
def page(at, first, last):
    entries = [(256, 4, 1, 16), (257, 4, 1, 16), (258, 3, 1, 16), (259, 3, 1, 1), (273, 4, 1, first), (277, 3, 1, 1), (278, 4, 1, 16), (279, 4, 1, 512)]
    body = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *e) for e in entries)
    return body + struct.pack("<I", 0 if last else at + len(body) + 4)
pages, directory = 12, 2 + 8 * 12 + 4
first = 8 + pages * directory
file = b"II*\0" + struct.pack("<I", 8)
for p in range(pages):
    file += page(8 + p * directory, first + 512 * p, p == pages - 1)
for p in range(pages):
    file += struct.pack("<256H", *((x * (p % 3 + 1) * 900) % 65536 for x in range(256)))
os.mkdir("stacks")
open("stacks/stack.tif", "wb").write(file)
open("cut.tif", "wb").write(file[:-100])
END
  "$tutti" data inspect stacks/stack.tif >inspect.log || fail "cannot inspect stack.tif"
  says inspect 'image .*u16 .*12x16x16'
  cat >stack.toml <<END
$microscopy_run
[data]
dataset = "arrays"
dir = "."
train_files = ["stacks"]
validation = 4
fields = ["image: from image axis 0 as 1 16 16"]
target = "image"
transforms = ["image: divide 65535"]
[model]
task = "regress"
[[model.layer]]
type = "conv"
channels = 1
kernel = 3
pad = 1
END
  config=stack.toml
  expect 0 stack --max-steps 2
  expect 0 two --max-steps 2 --ranks 2
  same_weights stack two 2
  expect 1 cut --set data.train_files=cut.tif
  says cut 'cut.tif.* go beyond the end of the file'
}
