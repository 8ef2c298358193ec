# Flood filling: batches that depend on what the network has made of those before.

# The same bits on 1, 2 and 4 ranks and after an end in mid-flight; a volume is cut into objects and scored.
case_neurons() {
  "$tutti" data generate neurons tissue --side 24 --radius 4 --train 2 --test 1 --seed 3 >generate.log || fail "cannot generate tissue"
  "$tutti" data verify neurons tissue >verify.log || fail "volumes are not sound"
  says verify 'validation/volume-000.h5 .* [1-9][0-9]* records'
  config=$configs/neurons.toml
  expect 0 one
  expect 0 two --ranks 2
  expect 0 four --ranks 4
  expect 0 shared --ranks 2 --set data.cache.memory=64MiB
  says shared 'volumes and their seeds lie in [0-9.]+ MiB of each node.s memory'
  in_parts 5 12 part
  expect 0 wider --max-steps 5
  expect 0 wider --resume --ranks 2 --max-steps 12
  for other in two four shared part wider; do
    same one $other 12
  done
  # A rank that is killed in mid-flight: an error, no hang, and the resume finds its seeds.
  expect 0 long --ranks 2 --epochs 10
  train killed --ranks 2 --epochs 10 &
  job=$!
  wait_for killed/checkpoints/step_0000006 $job
  launcher=$(pgrep -P "$(pgrep -P $job)")  # below this script's subshell stand the program, mpirun and the ranks
  kill -KILL "$(pgrep -P "$launcher" | tail -n 1)"
  ends 1 $job "after a rank was killed"
  expect 0 killed --ranks 2 --epochs 10 --resume
  same long killed 40
  "$tutti" train "$config" --output-dir still --fresh --set tracing.move_threshold=0.99 >still.log 2>&1
  cmp -s one/checkpoints/step_0000012/weights.safetensors still/checkpoints/step_0000012/weights.safetensors &&
    fail "fields of view that stand still train as those that move"
  "$tutti" infer "$config" --weights one --input tissue/validation/volume-000.h5 --output objects.npy --set tracing.move_threshold=0.5 >infer.log 2>&1 ||
    fail "cannot trace a volume"
  [ -s objects.npy ] || fail "no objects"
  says infer 'adapted Rand error'
  expect 2 parts --ranks 2 --set parallel.spatial=2
  says parts 'cannot share the fields of view'
  expect 2 even --set tracing.fov=6,7,7
  says even 'odd'
  expect 2 other --set model.name=cosmoflow-small
  rm tissue/train/volume-001.h5
  truncate -s 5000 tissue/train/volume-000.h5
  expect 1 cut
  says cut 'volume-000.h5'
  "$tutti" data verify neurons tissue >damaged.log && fail "a truncated volume is sound"
  says damaged 'volume-000.h5'
}
