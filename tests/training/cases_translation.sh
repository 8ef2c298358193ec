# Cases of training_test.sh. Models that write one sequence from another.
# shellcheck shell=bash disable=SC2154

case_translation() {
  # Sequences to copy: the same bits on one rank, on two, and through a resume.
  "$tutti" data generate token-pairs pairs --task copy --symbols 8 --longest 5 --train 160 --test 40 >generate.log || fail "cannot generate pairs"
  config=$here/translation.toml
  expect 0 one
  expect 0 two --ranks 2
  expect 0 part --max-steps 13
  expect 0 part --resume
  local last
  last=$(find one/checkpoints -name 'step_*' | sort | tail -n 1 | grep -Eo '[0-9]+$' | sed 's/^0*//')
  for other in two part; do same_weights one $other "$last"; done
  says one 'loss [0-9.]*, perplexity [0-9.]*, bits [0-9.]*, accuracy [0-9.]* %'
  # Tokens are right as often on two ranks as on one.
  "$tutti" eval "$config" --weights one --split validation --json >eval1.json 2>eval.log || fail "eval"
  "$tutti" eval "$config" --weights one --split validation --ranks 2 --json >eval2.json 2>eval.log || fail "eval on two ranks"
  [ "$(grep accuracy eval1.json)" = "$(grep accuracy eval2.json)" ] || fail "two ranks count other tokens"
  "$tutti" translate one --split validation --beam 1 --samples 4 --json | grep -q '"token_accuracy"' || fail "no report"
  "$tutti" translate one --text '1 2' >text.log 2>&1 && fail "a text without a tokenizer"
  says text 'no tokenizers lie beside'
  "$tutti" generate one >prompt.log 2>&1 && fail "a model of pairs goes on with a text"
  says prompt 'tutti translate'
  # Texts: the run keeps both tokenizers.
  printf 'red|blue|green|red blue|blue green' >source.txt
  printf 'rot|blau|grün|rot blau|blau grün' >target.txt
  mkdir texts
  "$tutti" data tokenize source.txt --to texts/source --tokenizer bytes --separator '|' >tokenize.log || fail "cannot tokenize"
  "$tutti" data tokenize target.txt --to texts/target --tokenizer bytes --separator '|' >>tokenize.log || fail "cannot tokenize"
  for side in source target; do
    "$tutti" data tokenize $side.txt --to texts/$side --files texts/$side --part validation --separator '|' >>tokenize.log || fail "cannot tokenize the other part"
  done
  expect 0 colours --set data.dir=texts --set data.window=24 --batch-size 5 --set run.replicas=1 --set run.epochs=0 --max-steps 200 --set model.embeddings=separate --set model.dropout=0
  [ "$("$tutti" translate colours --text 'red' --beam 2)" = rot ] || fail "red is not rot"
  # What is written is the same for any number of sources at a time.
  "$tutti" translate colours --split validation --beam 3 --output beam.txt >beam.log 2>&1 || fail "cannot translate"
  says beam 'validation: 5 samples, BLEU [0-9.]* .*tokens 100.000 %, whole sequences 100.00 %'
  tr '|' '\n' <target.txt | paste - | cmp - beam.txt || fail "what was learned by heart is written otherwise"
  "$tutti" translate colours --split validation --beam 2 --batch 3 --threads 1 --output again.txt >again.log 2>&1 || fail "cannot translate by threes"
  cmp beam.txt again.txt || fail "what is beside a source changes what is written"
  printf 'green\n\nblue green\n' >lines.txt
  "$tutti" translate colours --input lines.txt --output lines.out || fail "cannot translate lines"
  [ "$(sed -n 2p lines.out)" = '' ] && [ "$(wc -l <lines.out)" -eq 3 ] || fail "an empty line is none"
  "$tutti" translate colours --text 'a source that is longer than the window' >long.log 2>&1 && fail "a source that does not fit"
  says long 'data.window is 24'
  expect 0 narrow --set run.precision=bf16 --max-steps 2
  expect 2 wrong --set model.heads=5
  says wrong 'a width of 32 is not a multiple of 5 heads'
}
