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
  cat >images.toml <<'END'
[run]
epochs = 0
max_steps = 4
threads = 1
replicas = 4
log_every = 1
[plan]
measure = false
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
}
