# Cases of training_test.sh. Data sets: files, splits, fields, predictions.
# shellcheck shell=bash disable=SC2154

case_samples() {
  # From generated files to a metric, whatever a sample is: on one rank and on two, through an end and a resume, the same bits.
  "$tutti" data generate cosmoflow volumes --side 32 --train 8 --test 3 --seed 5 >generate.log || fail "cannot generate volumes"
  "$tutti" data generate deepcam cells --height 32 --width 64 --train 8 --test 3 --seed 5 >>generate.log || fail "cannot generate cells"
  for set in volumes cells; do
    config=$configs/$set.toml
    "$tutti" data verify "$([ $set = cells ] && echo deepcam || echo cosmoflow)" $set >verify.log || fail "$set are not sound"
    "$tutti" data inspect $set >inspect.log || fail "cannot inspect $set"
    says inspect 'A configuration to start from'
    expect 0 one-$set
    expect 0 two-$set --ranks 2
    in_parts 5 8 part-$set
    for other in two part; do
      [ $set = cells ] && same one-$set $other-$set 8
      same_weights one-$set $other-$set 8
    done
  done
  # Ranks that share each sample: nearly what one rank learns, the same bits each time and after a resume.
  for set in volumes cells; do
    config=$configs/$set.toml
    parts="--ranks 4 --set parallel.spatial=2"
    expect 0 parts-$set $parts --max-steps 5
    near one-$set parts-$set
    [ $set = cells ] || continue # what parts of batch norms keep is in checkpoints, too
    in_parts 2 5 cut-$set $parts
    same_weights parts-$set cut-$set 5
  done
  expect 2 parts-odd --ranks 3 --set parallel.spatial=2
  says parts-odd '2 ranks share a sample, and this job has 3'
  expect 2 parts-few --ranks 2 --replicas 2 --set parallel.spatial=2
  says parts-few '2 replica.s. of 2 parts take 4 ranks, this job has 2.*--ranks 4.*run.replicas = 1'
  expect 0 normed --ranks 2 --set parallel.batchnorm_group_size=2 --max-steps 2
  says one-volumes 'validation mae 0[.][0-9]*, loss'
  says one-cells 'validation iou [0-9.]* %, accuracy [0-9.]* %, loss'
  # Of mae lower is better: any is below 2, none below 0.001.
  config=$configs/volumes.toml
  expect 0 reached --target 2
  says reached 'done: target reached'
  grep -q '"metrics":{.*"mae":' reached/record.jsonl || fail "the record has no mae"
  grep -q '"target":{"metric":"mae","value":2.0,"higher_is_better":false}' reached/record.jsonl || fail "the record does not say which way the target lies"
  expect 0 aimless --epochs 1
  grep -q '"metric":"mae","higher_is_better":false' aimless/record.jsonl || fail "the record does not name the metric"
  expect 3 missed --target 0.001
  says missed 'target_missed: mae'
  expect 0 other --set run.metric=loss --target 5 --epochs 1
  expect 2 unknown --set run.metric=accuracy
  says unknown "there is no metric 'accuracy'; this task has mae, loss"
  # A file that has been damaged since is named.
  truncate -s -10 volumes/train/univ_00000003.tfrecord
  expect 1 damaged
  says damaged 'univ_00000003.tfrecord'
}

# A disk that is full: an error with the reason, nothing half made, and a set that lies there stays. A limit on file sizes stands for it.
case_full_sets() {
  local set flags
  makes() {
    # shellcheck disable=SC2086
    "$tutti" data generate "$set" "$1" $flags --seed 3 "${@:2}" >"$set.log" 2>&1
  }
  while read -r set flags; do
    (ulimit -f 1; makes new)
    [ $? -eq 1 ] || fail "$set: no error where files cannot be written"
    says "$set" 'new.*(space left|is the disk full|cannot be written|cannot write|cannot complete|File too large)'
    [ -z "$(find new -type f 2>/dev/null)" ] || fail "$set: left of a set that could not be made: $(find new -type f)"
    makes whole || fail "cannot generate $set"
    before=$(find whole -type f | sort | xargs cksum)
    (ulimit -f 1; makes whole --force)
    [ $? -eq 1 ] || fail "$set: no error where files cannot be replaced"
    [ "$(find whole -type f | sort | xargs cksum)" = "$before" ] || fail "$set: a set that lay there was damaged"
    rm -rf new whole
  done <<END
lattices --train 60 --test 20
cosmoflow --side 32 --train 2 --test 1
deepcam --height 48 --width 64 --train 2 --test 1
imagenet --side 64 --train 20 --test 10
imagenet --side 64 --train 20 --test 10 --per-tar 5
neurons --side 24 --radius 4 --train 2 --test 1
cbed --side 32 --train 3 --test 2
stem --side 32 --train 3 --test 2
clicks --train 500 --test 100
protein --residues 36 --train 50 --test 20 --stride 2
vibrations --train 20 --test 5 --masses 3 --samples 64
END
}

case_path() {
  # Staged, kept near, or without a bad sample: the same bits as from the files themselves, on one rank and on two.
  "$tutti" data generate cosmoflow volumes --side 32 --train 8 --test 3 --seed 5 >generate.log || fail "cannot generate volumes"
  config=$configs/volumes.toml
  expect 0 plain --max-steps 8
  expect 0 staged --max-steps 8 --set data.staging.dir=node
  says staged 'staged to node: 11 of 11 files copied'
  expect 0 again --max-steps 8 --set data.staging.dir=node
  says again 'staged to node: 0 of 11 files copied'
  rm node/train/univ_00000002.tfrecord
  "$tutti" data stage "$config" --to node --verify >stage.log 2>&1 || fail "cannot stage"
  says stage 'node: 1 of 11 files copied.*read again, and as they were'
  expect 0 staged-two --max-steps 8 --ranks 2 --set data.staging.dir=two
  expect 0 memory --max-steps 8 --set data.cache.memory=100MiB
  says memory 'data since the last such line: memory [1-9][0-9]* samples.*; files 0 samples, 0.0 MiB'
  expect 0 levels --max-steps 8 --ranks 2 --set data.cache.memory=1MiB --set data.cache.disk=1MiB --set data.cache.dir=.
  grep -q '"event":"data"' levels/record.jsonl || fail "the record does not say where samples came from"
  grep -q '"event":"staging"' staged-two/record.jsonl || fail "the record does not say what was staged"
  for other in staged again staged-two memory levels; do same_weights plain $other 8; done
  [ -z "$(ls /dev/shm | grep "^tutti-.*-[012]$" | grep -v "^tutti-test-")" ] || fail "shared memory stays behind"
  expect 2 nowhere --set data.cache.disk=1MiB
  says nowhere 'name the folder on the node.s disk in data.cache.dir'
  # Staging again copies what has changed, so a damaged original is damaged there, too.
  truncate -s -10 volumes/train/univ_00000003.tfrecord
  expect 1 damaged
  says damaged 'univ_00000003.tfrecord'
  expect 0 without --max-steps 8 --set data.quarantine=1
  says without 'left out, the next sound sample takes its place: train sample 3: .*univ_00000003.tfrecord'
  grep '"event":"data"' without/record.jsonl | grep -q 'univ_00000003.tfrecord' || fail "the record does not name the bad sample"
  expect 0 without-two --max-steps 8 --ranks 2 --set data.quarantine=1 --set data.cache.memory=100MiB
  same_weights without without-two 8
  rm volumes/train/univ_00000005.tfrecord
  ln -s nowhere volumes/train/univ_00000005.tfrecord
  expect 1 more --set data.quarantine=1
  says more 'data.quarantine goes on without 1 bad samples, and this is one more'
  expect 0 gone --max-steps 8 --set data.quarantine=2
}

case_larger() {
  # One file of records that is larger than the memory that the run may have: it is read by position, also through a cache on disk.
  "$tutti" data generate cosmoflow volumes --side 32 --train 8 --test 3 --seed 5 >generate.log || fail "cannot generate volumes"
  for _ in {1..8}; do cat volumes/train/*.tfrecord; done >eight
  for _ in {1..24}; do cat eight; done >volumes/many.tfrecord
  rm eight
  config=$configs/volumes.toml
  many=(--set data.dataset=arrays --set data.train_files=many.tfrecord --set data.validation_files=validation
    --set 'data.fields=["x: from x as i16 32 32 32 4", "y: from y as f32 4"]' --epochs 0 --max-steps 8 --replicas 1 --set batch.local=4)
  expect 0 free "${many[@]}"
  says free '1536 samples in 1 file'
  # Of private memory, threads' stacks and all.
  size=$(stat -c %s volumes/many.tfrecord)
  ulimit -S -d $((size / 1024 / 2))
  expect 0 bound "${many[@]}"
  expect 0 kept "${many[@]}" --set data.cache.disk=1GiB --set data.cache.dir=.
  for other in bound kept; do same_weights free $other 8; done
}

case_arrays() {
  # Files that a configuration describes: the bits of the data sets that are known by name, on two ranks and through a resume, too.
  "$tutti" data generate cosmoflow volumes --side 32 --train 8 --test 3 --seed 5 >generate.log || fail "cannot generate volumes"
  "$tutti" data generate deepcam maps --height 32 --width 64 --train 8 --test 3 --seed 5 >>generate.log || fail "cannot generate maps"
  described=(--set data.dataset=arrays --set data.train_files=train --set data.validation_files=validation)
  volumes=("${described[@]}" --set 'data.fields=["x: from x as i16 ? ? ? 4", "y: from y"]')
  maps=("${described[@]}" --set data.statistics=maps/stats.h5
    --set 'data.fields=["data: from climate/data whole", "labels: from climate/labels_0 whole classes 3"]')
  for set in volumes maps; do
    config=$configs/$set.toml
    declare -n own=$set
    expect 0 named-$set --max-steps 4
    expect 0 own-$set "${own[@]}" --max-steps 4
    expect 0 two-$set "${own[@]}" --max-steps 4 --ranks 2
    in_parts 2 4 part-$set "${own[@]}"
    # Ranks that share a sample read their rows of it alone.
    if [ $set = volumes ]; then
      expect 0 shared-$set "${own[@]}" --max-steps 4 --ranks 4 --set parallel.spatial=2
      near named-$set shared-$set
    fi
    for other in own two part; do same_weights named-$set $other-$set 4; done
    says own-$set '8 samples in 8 files'
    # What inspect prints of a folder that nobody knows is a configuration that trains.
    mv $set/train $set/files
    "$tutti" data inspect $set/files >inspected.toml || fail "cannot inspect $set/files"
    config=inspected.toml
    expect 0 inspected-$set --max-steps 2 --set plan.measure=false --set run.threads=1
  done
  # Statistics that are computed are those that the generator has written.
  config=$configs/maps.toml
  mv maps/files maps/train
  expect 0 stats0 "${maps[@]}" --max-steps 1
  printf '[data]\ndataset = "arrays"\ndir = "maps"\ntrain_files = ["train"]\nfields = ["data: from climate/data whole"]\ntransforms = ["data: permute 2 0 1"]\n' >stats.toml
  "$tutti" data stats stats.toml --output stats.json >stats.log || fail "cannot compute statistics"
  expect 0 stats1 "${maps[@]}" --set data.statistics=stats.json --max-steps 1
  same_weights stats0 stats1 1
  # The path is the same, what lies there is not.
  expect 0 drifts "${maps[@]}" --set data.statistics=stats.json --max-steps 1
  awk '/"max"/ {seen = 1} seen && !done && sub(/[0-9]+[.]/, "9999999.") {done = 1} {print}' stats.json >changed.json
  cmp -s changed.json stats.json && fail "the statistics are as before"
  mv changed.json stats.json
  expect 2 drifts "${maps[@]}" --set data.statistics=stats.json --resume --max-steps 2
  expect 2 outputs "${maps[@]}" --set model.classes=2
  says outputs "the field 'labels' has 3 classes"
  config=$configs/volumes.toml
  expect 1 gone "${volumes[@]}"
  says gone 'data.train_files: .*volumes/train does not exist'
  expect 2 unsaid "${described[@]}"
  says unsaid 'needs data.fields and data.train_files'
  mkfifo pipe.npy
  expect 1 pipe --set data.dataset=arrays --set data.dir=. --set data.train_files=pipe.npy --set 'data.fields=["x: from array"]'
  says pipe 'pipe.npy: expected a file, found a pipe'
}

case_data() {
  train missing --set data.dataset=cifar10 --data-dir absent && fail "a missing folder was accepted"
  says missing 'absent'
  mkdir cut
  "$tutti" data generate lattices cut --train 48 --test 8 >cut.log || fail "cannot generate"
  file=$(ls cut/*train*)
  # A data set is not overwritten unasked, not even a half of it.
  before=$(sha256sum "$file")
  exits 2 again data generate lattices cut --train 4 --test 4 --seed 2
  says again 'cut/lattices-train.bin exists: .*--force'
  "$tutti" data generate lattices cut --train 48 --test 8 --force >>again.log 2>&1 || fail "--force is refused"
  [ "$(sha256sum "$file")" = "$before" ] || fail "the same seed gave another file"
  truncate -s -1000 "$file"
  expect 1 truncated --data-dir cut
  says truncated "$(basename "$file")"
  # What it advises can be typed.
  says truncated "'tutti data generate lattices .*/cut --force'"
  "$tutti" data verify lattices cut --json >sound.log 2>&1 && fail "verify accepts a cut file"
  grep -q BAD sound.log && fail "verify --json speaks of lines that JSON does not have"
  says sound 'see the files that are not "sound"'
  expect 2 model-classes --set model.classes=2
  says model-classes 'record [0-9]+ has label 2, but model.classes = 2 allows 0 to 1'
  expect 2 data-classes --set data.classes=4
  says data-classes 'record [0-9]+ has label 4, but data.classes = 4 allows 0 to 3'
  grep -q 'step' model-classes.log data-classes.log && fail "trained on labels that the model does not have"
  # 27 classes in files of MNIST's format, as EMNIST's letters have them.
  idx_set letters 12 27
  expect 2 letters --set data.dataset=mnist --data-dir letters --set batch.global=8
  says letters 'set data.classes = 27'
  expect 0 letters --set data.dataset=mnist --data-dir letters --set batch.global=8 --set data.classes=27 --max-steps 1
  idx_set wide 20 10
  cp letters/train-* wide/
  expect 1 sizes --set data.dataset=mnist --data-dir wide --set batch.global=8 --set data.classes=27
  says sizes 'u8 image 1x12x12, .* u8 image 1x20x20'
  "$tutti" data verify mnist wide --classes 27 >verify.log 2>&1 && fail "verify accepts splits of different sizes"
  says verify 'images of 20x20 pixels, but the training images have 12x12'
}

case_splits() {
  # A validation set judges, the test set is used once: the same on one rank, on two and after a resume in mid-epoch.
  held="--set data.validation=0.25 --set run.eval_every=1"
  expect 0 one $held
  expect 0 two $held --ranks 2
  expect 0 parts $held --max-steps 8
  [ -z "$(tested parts)" ] && fail "a run that has ended has no test"
  expect 0 parts $held --max-steps 0 --resume
  for other in two parts; do
    same one $other 18
    [ "$(tested one)" = "$(tested $other)" ] || fail "the tests of one and $other differ: $(tested one); $(tested $other)"
  done
  [ "$(grep -c '"event":"test"' one/record.jsonl)" = 1 ] || fail "the test set was not used once"
  says one 'epoch 3.00: validation accuracy'
  best=$(readlink one/checkpoints/best)
  says one "test set: accuracy .* [(]8 samples, weights of step $((10#${best#step_}))[)]"
  # A resume that finds nothing to do does not use it again; one that was killed before does.
  expect 0 one $held --resume
  [ "$(grep -c '"event":"test"' one/record.jsonl)" = 1 ] || fail "the test set was used twice"
  sed -i '/"event":"test"/d' one/record.jsonl
  expect 0 one $held --resume
  [ "$(tested one)" = "$(tested two)" ] || fail "a test that was lost is not made up for: $(tested one)"
  "$tutti" eval "$config" --weights one --set data.validation=0.25 >eval.log 2>&1 || fail "eval of the test set"
  says eval "lattices test: 8 samples, accuracy $(tested one | sed 's/.*"accuracy":\([0-9.]*\).*/\1/' | awk '{ printf "%.2f", $1 * 100 }') %"
  "$tutti" eval "$config" --weights one --set data.validation=12 --split validation >eval.log 2>&1 || fail "eval of the validation set"
  says eval 'lattices validation: 12 samples'
  "$tutti" eval "$config" --weights one --split validation >eval.log 2>&1 && fail "eval of a validation set that is not there"
  says eval 'has no validation set of its own: data.validation takes one'
  expect 2 other $held --set data.validation=1.5
  expect 2 other $held --set data.validation=48
  says other 'takes 48 of the 48 training samples'
  expect 2 one $held --set data.split_seed=2 --epochs 4 --resume
}

case_infer() {
  # What infer predicts for files without labels is what eval predicts for them with labels.
  "$tutti" data generate cosmoflow volumes --side 32 --train 8 --test 3 >generate.log || fail "cannot generate volumes"
  "$tutti" data generate deepcam maps --height 48 --width 64 --train 8 --test 3 >>generate.log || fail "cannot generate maps"
  for set in volumes maps; do
    config=$configs/$set.toml
    expect 0 run-$set --max-steps 1 --set plan.measure=true
    "$tutti" eval "$config" --weights run-$set --logits $set-eval.npy --save-predictions seen-$set >eval-$set.log 2>&1 || fail "eval of $set"
    "$tutti" infer "$config" --weights run-$set --input $set/validation --output $set-infer.npy >infer-$set.log 2>&1 || fail "infer of $set"
    "$tutti" infer "$config" --weights run-$set --split validation --output $set-split.npy --set plan.measure=true >>infer-$set.log 2>&1 || fail "infer of a part of $set"
    "$tutti" infer "$config" --weights run-$set --input "$set/validation/*0[012].*" --output $set.nc >>infer-$set.log 2>&1 || fail "infer of a pattern"
    # All of them take the kernels that the run has measured.
    ls $set/validation/* | cmp - $set-infer.npy.files.txt || fail "infer does not name the files of $set"
    for other in infer split; do cmp $set-eval.npy $set-$other.npy || fail "eval and infer of $set differ"; done
    cmp $set-eval.npy seen-$set/prediction.npy || fail "the saved predictions of $set are others"
    head -c 4 seen-$set/sample_0002.png | grep -q PNG || fail "no picture of $set"
    "$tutti" data inspect $set.nc >inspect.log 2>&1 || fail "cannot inspect $set.nc"
    says inspect 'prediction'
  done
  # Each file of predictions says which samples its rows are, and who predicted them.
  python3 - <<'END' || fail "volumes-split.npy.json: $(cat volumes-split.npy.json)"
import glob, json, os, sys
about, given = json.load(open("volumes-split.npy.json")), json.load(open("volumes-infer.npy.json"))
files = sorted(glob.glob("volumes/validation/*"))
said = about["attributes"]
sys.exit(not (about["index"] == list(range(len(files))) and [os.path.abspath(file) for file in about["file"]] == [os.path.abspath(file) for file in given["file"]] == [os.path.abspath(file) for file in files] and said["split"] == "validation" and said["model"] == "cosmoflow"
              and said["step"] == [1] and said["checkpoint"] and said["program"].startswith("tutti ") and given["attributes"]["split"] == "files"))
END
  # What is saved as truth is what the metric compares with.
  python3 - eval-volumes.log <<'END' || fail "the saved files have another mae than eval: $(cat eval-volumes.log)"
import array, re, sys
x, y = (array.array("f", open(f"seen-volumes/{name}.npy", "rb").read()[128:]) for name in ("prediction", "truth"))
mae = sum(abs(a - b) for a, b in zip(x, y)) / len(x)
sys.exit(len(x) != len(y) or abs(mae - float(re.search(r"mae ([0-9.]+)", open(sys.argv[1]).read())[1])) > 1e-4)
END
  "$tutti" eval "$configs/volumes.toml" --weights run-volumes --save-predictions seen-volumes >refused.log 2>&1 && fail "a folder was filled twice"
  says refused 'is not an empty folder'
  for file in seen-volumes/scatter.png seen-volumes/x.npy seen-volumes/y.npy seen-maps/data.npy seen-maps/labels.npy; do
    [ -s $file ] || fail "no $file"
  done
  "$tutti" infer "$configs/maps.toml" --weights run-maps --input maps/validation --labels --output labels.h5 >labels.log 2>&1 || fail "infer of labels"
  refused() {
    exits 2 refused infer "${@:2}"
    says refused "$1"
  }
  # A field that lies elsewhere in the files keeps the statistics of the data that was trained on.
  "$tutti" infer "$configs/maps.toml" --weights run-maps --input seen-maps/data.npy --field 'data: from array axis 0' --output array.npy >array.log 2>&1 || fail "infer of a .npy of maps"
  cmp maps-eval.npy array.npy || fail "eval and infer of a .npy of maps differ"
  refused "no array 'climate/data' for the field 'data', there is array .3, 48, 64, 16.: .*--field \"data: from array axis 0\"" "$configs/maps.toml" --weights run-maps --input seen-maps/data.npy --output o.npy
  # Weights of another network or task: that is said first, whatever does not fit because of it.
  both="the weights of run-volumes are of the network 'cosmoflow' .task regress., .*maps.toml has 'deepcam-small' .task segment."
  refused "$both: .*tutti infer run-volumes/config.toml --weights run-volumes" "$configs/maps.toml" --weights run-volumes --input maps/validation --output o.npy
  config=$configs/tiny.toml
  expect 0 run-images --max-steps 1 --set model.task=classify
  for run in volumes images; do
    "$tutti" eval "$configs/maps.toml" --weights run-$run --set run.metric=iou >other.log 2>&1 && fail "eval of a run of another task"
    says other "the weights of run-$run are of the network '.*' .task (regress|classify)., .*maps.toml has 'deepcam-small' .task segment."
    says other "tutti eval run-$run/config.toml --weights run-$run"
  done
  # A run's folder is no data: inspect says what shows it.
  for path in run-maps run-maps/ run-maps/checkpoints run-maps/checkpoints/*1/weights.safetensors; do
    exits 2 run data inspect $path
    says run "a run, not data: 'tutti eval run-maps/config.toml --weights run-maps' evaluates its weights"
  done
  refused 'predicts numbers, not classes' "$configs/volumes.toml" --weights run-volumes --input volumes/validation --labels --output o.npy
  refused 'should end in .npy, .h5 or .nc' "$configs/maps.toml" --weights run-maps --input maps/validation --output o.csv
  cp -r maps/validation own && before=$(cat own/* | cksum)
  refused 'is one of the files that --input names' "$configs/maps.toml" --weights run-maps --input own --output "$(find own -name '*.h5' | head -n 1)"
  [ "$(cat own/* | cksum)" = "$before" ] || fail "infer changed what it was to read"
  refused "does not read a field 'image', only data" "$configs/maps.toml" --weights run-maps --input own --field 'image: from climate/data whole' --output o.npy
  refused 'says where the input lies in the files of --input' "$configs/maps.toml" --weights run-maps --split validation --field 'data: from climate/data whole' --output o.npy
  refused 'give --input or --split' "$configs/maps.toml" --weights run-maps --output o.npy
  [ -z "$(ls ./*.part 2>/dev/null)" ] || fail "parts of files are left"
}
