# Cases of training_test.sh. Models that write one sequence from another.
# shellcheck shell=bash disable=SC2154

case_translation() {
  # Sequences to copy: the same bits on one rank, on two, and through a resume.
  "$tutti" data generate token-pairs pairs --task copy --symbols 8 --longest 5 --train 160 --test 40 >generate.log || fail "cannot generate pairs"
  config=$configs/translation.toml
  expect 0 one
  expect 0 two --ranks 2
  expect 0 part --max-steps 13
  expect 0 part --resume
  for other in two part; do same_weights one $other "$(latest_step one)"; done
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
  # One line that is too long leaves its place empty, and the others as they are.
  printf 'red\na source that is longer than the window\nblue\n' >mixed.txt
  "$tutti" translate colours --input mixed.txt --output mixed.out 2>mixed.log || fail "a line that does not fit stops the others"
  says mixed 'line 2 of mixed.txt has 39 tokens, and data.window is 24: nothing is written for it'
  [ "$(paste -sd, mixed.out)" = 'rot,,blau' ] || fail "lines beside one that does not fit are written otherwise"
  # Weights alone, with the configuration in the run's folder, or beside the data that have the tokenizers.
  cp colours/checkpoints/step_0000200/weights.safetensors weights.safetensors
  cp colours/config.toml colours.toml
  for named in colours/config.toml colours.toml; do
    [ "$("$tutti" translate weights.safetensors --config $named --text red)" = rot ] || fail "weights alone with $named: red is not rot"
  done
  # What is in a folder of pairs, and what a missing one is called.
  "$tutti" data inspect texts >inspected.toml || fail "cannot inspect pairs"
  grep -q '5 pairs of vocabularies of 257 and 257, the first 5 of up to 11 tokens' inspected.toml || fail "inspect does not know pairs"
  grep -q '"red" -> "rot"' inspected.toml || fail "inspect shows no pair"
  "$tutti" train inspected.toml --output-dir inspected --max-steps 2 --set plan.measure=false >inspected.log 2>&1 || fail "what inspect suggests does not train"
  expect 1 missing --set data.dir=nowhere
  says missing 'nowhere does not exist'
  expect 1 half --set data.dir=texts/source
  says half "has no folder 'source'"
  # Models and data that do not fit.
  expect 2 decoder --set model.name=gpt2 --set 'model.hidden=[]'
  says decoder 'and is given source: it goes with data.dataset = "text" or "tokens"'
  "$tutti" infer colours/config.toml --weights colours --input texts --output out.npy >infer.log 2>&1 && fail "infer of pairs"
  says infer 'tutti translate --input'
  expect 0 narrow --set run.precision=bf16 --max-steps 2
  expect 2 wrong --set model.heads=5
  says wrong 'a width of 32 is not a multiple of 5 heads'
}
