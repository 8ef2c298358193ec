#!/bin/bash
# compatibility_test.sh PROGRAM CASE FOLDER: one case of README.md's table. Prints what went wrong and exits 1.
set -u
tutti=$1 case=$2 folder=$3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR
. "$here/../training/runs.sh"
cp -r "$here"/edfeb212/. .

compare() { python3 -SE "$here/compare.py" "$@" >compare.log 2>&1 || fail "$*: $(cat compare.log)"; }

# resolves FILE: the program reads a configuration as the version that wrote it did
resolves() {
  env -u TUTTI_COMM_TIMEOUT_S "$tutti" config "$1" >resolved.toml 2>config.log || fail "$1 is not read"
  compare values "$1" resolved.toml
}

# collects CODE NAME: into a study of this name, whose exit code is CODE, the records of all runs
collects() {
  local record count=0
  for record in runs/*/record.jsonl; do
    mkdir -p "$2/runs/n0002-r$((++count))"
    cp "$record" "$2/runs/n0002-r$count/"
  done
  exits "$1" "$2" study --collect --output-dir "$2"
  [ "$(wc -l <"$2/runs.csv")" = $((count + 1)) ] || fail "some of $count records are missing: $(cat "$2/runs.csv")"
}

case_configurations() {
  local file name verb network step until flags
  for file in images.toml dense.toml text.toml clicks.toml examples/*.toml; do resolves "$file"; done
  while read -r -u 3 name verb network step until flags; do
    python3 -SE "$here/compare.py" config runs/"$name"/checkpoints/step_*/manifest.json >"$name.toml" || fail "$name keeps no configuration"
    resolves "$name.toml"
    # shellcheck disable=SC2046
    "$tutti" plan "$name.toml" $(grep -o -- '--ranks [0-9]*' <<<"$flags") >plan.log 2>&1 || fail "$name.toml has no plan"
  done 3< <(grep -v '^#' runs.txt)
}

case_resumes() {
  local name verb network step until flags
  while read -r -u 3 name verb network step until flags; do
    # Another processor, or another oneDNN, has other kernels than the one on which the runs began.
    # shellcheck disable=SC2086
    "$tutti" "$verb" "$network.toml" --output-dir "runs/$name" $flags --max-steps "$until" --resume --resume-anyway plan.choices >"$name.log" 2>&1 || fail "$name is not resumed"
    says "$name" "resuming from '.*step_0*$step' at step $step"
    ! grep 'begin alike\|begins at zero\|virtual time begins here\|is lost' "$name.log" || fail "$name has lost what its checkpoint kept"
    compare losses "runs/$name/after/losses.txt" "runs/$name/record.jsonl"
    compare tensors "runs/$name/after" "runs/$name/checkpoints/$(<"runs/$name/checkpoints/latest")"
  done 3< <(grep -v '^#' runs.txt)
  collects 0 resumed
  # A trial of compression, of which edfeb212 kept no times, begins anew and comes to its verdict; a verdict that was kept is not tried again.
  for name in auto_trial auto_verdict; do
    # shellcheck disable=SC2046
    "$tutti" train dense.toml --output-dir "runs/$name" $(grep "^$name " runs.txt | grep -o -- '--.*') --max-steps 32 --resume --resume-anyway plan.choices >"$name.log" 2>&1 || fail "$name does not go on"
  done
  says auto_trial 'compression (on|off): dense blocks'
  ! grep 'dense blocks' auto_verdict.log || fail "a verdict that was kept is tried again"
}

case_moved() {
  # The configuration in the folder of a run named its data from the working folder. Now paths start at the file, and the message says both.
  mv runs/plain plain
  python3 -SE "$here/compare.py" config plain/checkpoints/step_*/manifest.json >plain/config.toml
  exits 2 refused train plain/config.toml --resume --max-steps 4
  says refused "data.dir: 'images' starts at the folder of its file, .* where earlier versions looked, there is .*/images: write that path in the file"
  "$tutti" train plain/config.toml --data-dir images --resume --resume-anyway plan.choices --ranks 1 --max-steps 4 >moved.log 2>&1 || fail "--data-dir is no way out"
  says moved 'at step 3'
}

case_records() {
  "$tutti" study --collect --output-dir study >collect.log 2>&1 || fail "the runs of a study are not collected"
  compare columns "$here/edfeb212/study/study.csv" study/study.csv
  compare columns "$here/edfeb212/study/runs.csv" study/runs.csv
  [ -s study/report.html ] || fail "no report"
  # Every kind of line. All but one end as where a run was killed.
  collects 1 killed
  [ "$(grep -c 'its record has no run_stop' killed/runs.csv)" = "$(grep -vc '^#' runs.txt)" ] || fail "other records than those of runs.txt are cut: $(cat killed/runs.csv)"
}

case_weights() {
  local weights
  # Of a file, of a checkpoint's folder, of a run.
  for weights in weights/images.safetensors runs/plain/checkpoints/step_0000003 runs/plain; do
    "$tutti" eval images.toml --weights "$weights" --json >eval.json 2>eval.log || fail "$weights is not evaluated"
    python3 -SE -c 'import json, sys
old, new = (json.load(open(path)) for path in sys.argv[1:])
sys.exit(any(abs(old[key] - new[key]) > 1e-4 for key in ("samples", "accuracy", "loss")))' weights/eval.json eval.json || fail "$weights: $(cat weights/eval.json eval.json)"
  done
  "$tutti" infer images.toml --weights weights/images.safetensors --split validation --output predictions.npy >infer.log 2>&1 || fail "nothing is predicted"
  compare arrays weights/predictions.npy predictions.npy
  "$tutti" generate weights/text.safetensors --config text.toml --tokenizer weights/text.tokenizer --prompt 'the ' --tokens 8 --temperature 0 >text.txt 2>text.log ||
    fail "no text is generated"
  cmp weights/text.txt text.txt || fail "another text"
  # A run that begins with these weights.
  "$tutti" train images.toml --output-dir begun --max-steps 1 --set model.weights=weights/images.safetensors >begun.log 2>&1 || fail "no run begins with them"
}

[ "$(type -t "case_$case")" = function ] || fail "no case $case"
"case_$case"
