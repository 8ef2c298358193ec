# Cases of training_test.sh. Runs on the emulated device that are killed, and checkpoints that move between it and the CPU.
# shellcheck shell=bash disable=SC2154

case_device_killed() {
  # It goes on to the bit, and under another order of work on the device.
  on_device=(--device emulated --epochs 2 --set checkpoint.every_steps=3)
  expect 0 whole "${on_device[@]}"
  grep -q '"device":' whole/record.jsonl || fail "the record does not name the device"
  train parts "${on_device[@]}" &
  job=$!
  wait_for parts/checkpoints/step_0000003 $job
  kill -KILL "$(pgrep -P $job)"
  ends 137 $job "after SIGKILL"
  [ ! -e parts/checkpoints/step_0000016 ] || fail "the run was over before it was killed"
  TUTTI_EMULATED_SEED=5 expect 0 parts "${on_device[@]}" --resume
  says parts "resuming from 'parts/checkpoints/step_00000(0[3-9]|1[0-5])'"
  same whole parts 16
}

# alike NAME NAME TOLERANCE: the losses of the steps of two runs, relative to each other
alike() {
  for name in "$1" "$2"; do
    grep '"event":"step"' "$name/record.jsonl" | grep -Eo '"loss":[^,}]*' | cut -d: -f2 >"$name.losses"
  done
  [ "$(wc -l <"$1.losses")" -ge 8 ] && [ "$(wc -l <"$1.losses")" = "$(wc -l <"$2.losses")" ] || fail "$1 and $2 have other numbers of steps"
  paste "$1.losses" "$2.losses" | awk -v most="$3" '{ d = $1 - $2; if (d < 0) d = -d; if (!(d <= most * $1)) exit 1 }' ||
    fail "the losses of $1 and $2: $(paste "$1.losses" "$2.losses")"
}

case_device_moves() {
  # A checkpoint of the CPU goes on on the device, and one of the device on the CPU: with the host's kernels to the bit, with the device's own
  # up to rounding, which in a network that compares nothing stays rounding.
  config=$configs/smooth.toml
  like_device=(--set plan.layout=last --set plan.slabs=1 --set plan.tile_bytes=1000000000000)
  expect 0 cpu "${like_device[@]}" --max-steps 8
  for kernels in host own; do
    on_device=(--device emulated --set plan.host_kernels=$([ $kernels = host ] && echo true || echo false))
    expect 0 there-$kernels "${like_device[@]}" --max-steps 4
    expect 0 there-$kernels "${like_device[@]}" "${on_device[@]}" --max-steps 8 --resume
    expect 0 back-$kernels "${like_device[@]}" "${on_device[@]}" --max-steps 4
    expect 0 back-$kernels "${like_device[@]}" --device cpu --set plan.host_kernels=false --max-steps 8 --resume
    for run in there back; do
      says $run-$kernels "resuming from '$run-$kernels/checkpoints/step_0000004'"
      [ $kernels = own ] || same cpu $run-host 8
    done
  done
  for run in there back; do
    alike cpu $run-own 1e-5
    cmp -s cpu/checkpoints/step_0000008/weights.safetensors $run-own/checkpoints/step_0000008/weights.safetensors && fail "$run-own has the CPU's bits: the device's own kernels were not used"
  done
  true
}
