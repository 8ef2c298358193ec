# Cases of training_test.sh about coded images; see README.md.
# shellcheck shell=bash disable=SC2154

case_images() {
  "$tutti" data generate imagenet pictures --side 40 --train 48 --test 12 --picture-classes 3 >generate.log 2>&1 || fail "cannot generate pictures"
  "$tutti" data generate imagenet tars --side 40 --train 48 --test 12 --picture-classes 3 --per-tar 20 >generate.log 2>&1 || fail "cannot generate shards"
  [ -f tars/train/shard-000002.tar ] || fail "there are no three shards"
  for set in pictures tars; do
    "$tutti" data inspect $set >inspect.log || fail "cannot inspect $set"
    says inspect '48 training images of 3 classes, 12 validation images'
    "$tutti" data verify imagenet $set >verify.log || fail "$set is not sound"
  done
  config=images.toml
  cat >images.toml <<END
$(small_run 'epochs = 0' 'max_steps = 4' 'replicas = 4')
[data]
dataset = "imagenet"
dir = "pictures"
transforms = ["image: resized-crop 32, flip x, divide 255, normalise"]
[model]
name = "resnet8"
[batch]
local = 4
END
  expect 0 one
  expect 0 two --ranks 2
  expect 0 four --ranks 4
  expect 0 readers --set data.readers=3
  for other in two four readers; do same_weights one $other 4; done
  # The same images in another order: their classes' folders are gone.
  expect 0 shards --set 'data.dir="tars"' --ranks 2
  expect 2 plain --set 'data.transforms=["image: flip x"]'
  says plain "'image' holds coded images of any size: .*resized-crop"
  damaged=$(find pictures/train -name 'img_00000004.jpg')
  truncate -s 300 "$damaged"
  expect 1 damaged --set run.max_steps=9
  says damaged "img_00000004.jpg is .*: fetch the file again"
  "$tutti" data verify imagenet pictures >verify.log 2>&1 && fail "a truncated image is sound"
  says verify "BAD .*img_00000004.jpg"
  # Without it, and from a cache of the files' bytes: the same on one rank and on two.
  expect 0 without --set run.max_steps=9 --set data.quarantine=1
  says without 'left out, the next sound sample takes its place: train sample [0-9]+: .*img_00000004.jpg'
  grep '"event":"data"' without/record.jsonl | grep -q 'img_00000004.jpg' || fail "the record does not name the bad image"
  expect 0 without-two --set run.max_steps=9 --set data.quarantine=1 --ranks 2 --set data.cache.memory=1MiB
  same_weights without without-two 9
  for set in pictures tars; do
    expect 0 kept-$set --set data.dir=$set --set run.max_steps=9 --set data.quarantine=1 --set data.cache.memory=50KiB --set data.cache.disk=1MiB --set data.cache.dir=.
    says kept-$set 'memory [1-9][0-9]* samples.*node [1-9][0-9]* samples.*; files 0 samples'
  done
  same_weights without kept-pictures 9
  expect 0 staged --set data.staging.dir=node --set run.max_steps=9 --set data.quarantine=1
  same_weights without staged 9
  # Predictions for images that lie in any folder are those for the same images with classes.
  "$tutti" infer images.toml --weights one --input pictures/val* --output loose.npy >infer.log 2>&1 || fail "infer of a folder of images"
  "$tutti" eval images.toml --weights one --split validation --logits eval.npy >eval.log 2>&1 || fail "eval of the images"
  cmp loose.npy eval.npy || fail "eval and infer of images differ"
  find pictures/val* -name '*.jpg' | LC_ALL=C sort | cmp - loose.npy.files.txt || fail "infer does not name the images"
  "$tutti" infer images.toml --weights one --input pictures --labels --output all.npy >infer.log 2>&1 && fail "a cut image was predicted for"
  says infer 'img_00000004.jpg'
  "$tutti" infer images.toml --weights one --input tars/train/shard-000000.tar --output o.npy >infer.log 2>&1 && fail "an archive was taken for an image"
  says infer 'is an archive'
}

case_slow_images() {
  # Few large images under many names: one reader does not keep up with a small network, and the run says how many cores would.
  "$tutti" data generate imagenet large --side 1024 --train 4 --test 4 --picture-classes 2 >generate.log 2>&1 || fail "cannot generate pictures"
  cat >slow.toml <<'END'
[run]
epochs = 1
threads = 1
[plan]
measure = false
[data]
dataset = "imagenet"
dir = "large"
transforms = ["image: resized-crop 512, crop 8 8, divide 255, normalise"]
[model]
name = "layers"
[[model.layer]]
type = "flatten"
[[model.layer]]
type = "dense"
outputs = 2
[batch]
local = 4
END
  config=slow.toml
  # The line stands where a second or more was waited: as many names as that takes on this processor.
  local images names
  images=$(find "$PWD"/large/train -name '*.jpg')
  for names in 64 320 1600 8000; do
    for image in $images; do
      for i in $(seq 1 "$names"); do ln -sf "$image" "${image%.jpg}-$i.jpg"; done
    done
    expect 0 slow --fresh
    grep -q '% of the epoch for data' slow.log && break
  done
  says slow 'waited [0-9]+ % of the epoch for data: reading took [0-9.]+ s of a core, steps [0-9.]+ s; free cores a rank needs: [1-9]'
}
