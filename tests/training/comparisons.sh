# What cases of training_test.sh compare, wait for and are given; bash sources it after runs.sh.
# shellcheck shell=bash disable=SC2154

# tensor_lines FILE: of a .safetensors file, a line "BEGIN BYTES NAME" for each tensor
tensor_lines() {
  local header
  header=$(od -An -tu8 -N8 "$1" | tr -d ' ')
  tail -c +9 "$1" | head -c "$header" | grep -Eo '"[^"]+":\{"dtype":"F32","shape":\[[0-9,]*\],"data_offsets":\[[0-9]+,[0-9]+\]' |
    sed -E 's/"([^"]+)":.*"data_offsets":\[([0-9]+),([0-9]+)\]/\2 \3 \1/' |
    while read -r begin end name; do echo "$((8 + header + begin)) $((end - begin)) $name"; done
}

# same NAME NAME STEP: byte for byte the same weights and state, and the same kept by ranks
same() {
  same_weights "$@"
  same_kept "$@"
}

same_kept() {
  local step
  step=$(printf 'step_%07d' "$3")
  python3 -SE "$here/tensors.py" kept "$1/checkpoints/$step" "$2/checkpoints/$step" >kept.log || fail "what the ranks of $1 and $2 keep differs at step $3"
}

# same_tensors NAME NAME STEP: weights and state but for a replay's time, in whichever order they lie
same_tensors() {
  local file run step
  step=$(printf 'step_%07d' "$3")
  for file in weights state; do
    for run in "$1" "$2"; do python3 -SE "$here/tensors.py" all "$run/checkpoints/$step/$file.safetensors" | sed '/^replay.clock /d; /^$/d' >"$run.tensors"; done
    [ $file = state ] || [ -s "$1.tensors" ] || fail "$1 has no weights at step $3"
    cmp "$1.tensors" "$2.tensors" || fail "$file of $1 and $2 differ at step $3"
  done
}

# same_weights NAME NAME STEP: where ranks keep nothing of their own
same_weights() {
  local step
  step=$(printf 'step_%07d' "$3")
  for file in weights state; do
    cmp "$1/checkpoints/$step/$file.safetensors" "$2/checkpoints/$step/$file.safetensors" || fail "$file of $1 and $2 differ at step $3"
  done
}

# near NAME NAME: the loss of their first step up to rounding, of four steps roughly: an update that divides by
# the gradient's size makes more of a rounding
near() {
  for name in "$1" "$2"; do
    grep '"event":"step"' "$name/record.jsonl" | head -n 4 | grep -Eo '"loss":[^,}]*' | cut -d: -f2 >"$name.losses"
    [ "$(wc -l <"$name.losses")" = 4 ] || fail "$name has no four steps"
  done
  paste "$1.losses" "$2.losses" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (!(d <= (NR == 1 ? 1e-5 : 1e-2) * $1)) exit 1 }' ||
    fail "the losses of $1 and $2: $(paste "$1.losses" "$2.losses")"
  for name in "$1" "$2"; do
    grep '"event":"eval"' "$name/record.jsonl" | head -n 1 | grep -Eo 'loss":[^,}]*' | cut -d: -f2 >"$name.losses"
    [ -s "$name.losses" ] || fail "$name has not evaluated"
  done
  paste "$1.losses" "$2.losses" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (!(d <= 2e-2 * $1)) exit 1 }' ||
    fail "the first evaluations of $1 and $2: $(paste "$1.losses" "$2.losses")"
}

# losses NAME: of its steps, epochs and evaluations, as the record has them
losses() {
  grep -E '"event":"(step|epoch|eval)"' "$1/record.jsonl" | grep -Eo '"(event|step|loss|train_loss)":[^,}]*'
}

# tested NAME: what its last use of the test set found
tested() {
  grep '"event":"test"' "$1/record.jsonl" | tail -n 1 | grep -Eo '"(step|weights_step|samples|accuracy|loss)":[^,}]*' | tr '\n' ' '
}

# wait_for FILE PID: until it exists, as long as the run lives
wait_for() {
  until [ -e "$1" ]; do
    kill -0 "$2" 2>/dev/null || [ -e "$1" ] || fail "the run ended before $1 was there"
    sleep 0.05
  done
}

# latest_step NAME: of the checkpoint that a run has written last
latest_step() { sed 's/.*_0*//' "$1/checkpoints/latest"; }

# wait_for_lines NAME PID COUNT REGEX: until the run's log has so many such lines
wait_for_lines() {
  until [ "$(grep -Ecs "$4" "$1.log")" -ge "$3" ]; do
    kill -0 "$2" 2>/dev/null || fail "the run ended before its log had $3 lines of '$4': $1"
    sleep 0.05
  done
}

# goes_on STUDY PID WHAT: until the study's run on 2 ranks goes on from its checkpoint
goes_on() {
  until grep -q '"resume_step":[1-9]' "$1/runs/n0002-r1/record.jsonl"; do
    kill -0 "$2" 2>/dev/null || fail "$3 was begun anew"
    [ ! -e "$1/runs/n0002-r1.attempt-1" ] || fail "$3 was set aside"
    sleep 0.05
  done
}

# small_run LINE...: how the configuration of a small run begins, with these lines of [run]
small_run() { printf '%s\n' '[run]' 'threads = 1' 'log_every = 1' "$@" '[plan]' 'measure = false'; }

# idx_set FOLDER SIDE CLASSES: both splits in MNIST's format, 54 images each of SIDE x SIDE pixels
idx_set() {
  mkdir -p "$1"
  local split
  for split in train t10k; do
    {
      printf "\\0\\0\\10\\3\\0\\0\\0\\66\\0\\0\\0\\$(printf %o "$2")\\0\\0\\0\\$(printf %o "$2")"
      head -c $((54 * $2 * $2)) /dev/zero
    } >"$1/$split-images-idx3-ubyte"
    {
      printf '\0\0\10\1\0\0\0\66'
      local i
      for ((i = 0; i < 54; i++)); do printf "\\$(printf %o $((i % $3)))"; done
    } >"$1/$split-labels-idx1-ubyte"
  done
}
