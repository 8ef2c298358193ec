# Texts: language models, token files, and what they go on with.

# The run's text: the same for the same seed, with any number of threads and from every form of the weights.
write_on() {
  "$tutti" generate one --prompt 'the ' --tokens 40 --seed 3 >said.txt 2>said.log || fail "cannot generate"
  [ "$(head -c 4 said.txt)" = 'the ' ] && [ "$(wc -c <said.txt)" -eq 45 ] || fail "not a prompt, 40 characters and a line's end"
  for from in one/checkpoints/step_0000020 one/checkpoints/step_0000020/weights.safetensors; do
    "$tutti" generate "$from" --prompt 'the ' --tokens 40 --seed 3 --threads 1 >again.txt 2>again.log || fail "cannot generate from $from"
    [ -s again.txt ] || fail "no text from $from"
  done
  "$tutti" generate one --prompt 'the ' --tokens 40 --seed 3 --threads 1 | cmp - said.txt || fail "threads change a text"
  "$tutti" generate one --prompt 'the ' --tokens 40 --seed 4 | cmp -s - said.txt && fail "another seed, the same text"
  "$tutti" generate one --prompt 'the ' --tokens 9 --temperature 0 >cold.txt
  "$tutti" generate one --prompt 'the ' --tokens 9 --top-k 1 --seed 7 | cmp - cold.txt || fail "the likeliest is not one alone"
  "$tutti" generate one --prompt 'the ' --tokens 9 --temperature 0 --window 5 >short.txt || fail "no shorter window"
  [ "$(head -c 6 short.txt)" = "$(head -c 6 cold.txt)" ] || fail "a shorter window changes what it has room for"
  "$tutti" generate one --window 17 >longer.log 2>&1 && fail "more places than were learned"
  says longer 'samples have 17 positions, and the model learns 16'
  # Longer than the window.
  "$tutti" generate one --tokens 50 --samples 2 | grep -q '^---$' || fail "not two samples"
  "$tutti" generate one --prompt '' >empty.log 2>&1 && fail "an empty prompt"
  says empty 'prompt is given an empty value'
  "$tutti" generate one --prompt 'THE' >capital.log 2>&1 && fail "a character that the model does not know"
  says capital "'T' .U.0054.*not in the vocabulary"
  cp -r one/checkpoints/step_0000020 alone
  "$tutti" generate alone >alone.log 2>&1 && fail "weights without a network"
  says alone 'name the configuration of its network with --config'
  cp one/config.toml alone.toml
  "$tutti" generate alone --config alone.toml >alone.log 2>&1 && fail "weights without a tokenizer"
  says alone 'with --tokenizer'
  for named in "alone.toml --tokenizer one/tokenizer" one/config.toml; do
    # shellcheck disable=SC2086
    "$tutti" generate alone --config $named --prompt 'the ' --tokens 40 --seed 3 >alone.txt 2>alone.log || fail "cannot generate with $named"
    [ "$(wc -c <alone.txt)" -eq 45 ] || fail "no text with $named"
  done
}

# Documents: a model sees that they are apart without being told to read where, and goes on with one.
documents() {
  sed 's/$/<s>/' text/train.txt >documents.txt
  "$tutti" data tokenize documents.txt --to documents --tokenizer bytes --separator '<s>' --validation 0.2 >tokenize.log || fail "cannot tokenize documents"
  set -- --set data.dataset=tokens --set data.dir=documents --max-steps 3
  expect 0 across "$@"
  expect 0 within "$@" --set data.segments=true
  cmp -s across/checkpoints/step_0000003/weights.safetensors within/checkpoints/step_0000003/weights.safetensors && fail "segments change nothing"
  "$tutti" generate within --prompt 'the ' --tokens 5 >within.txt 2>within.log || fail "cannot go on with a document"
  expect 2 begun "$@" --set model.weights=one
  says begun 'model.weights = .*one: .*another tokenizer'
  [ ! -e begun/tokenizer ] || fail "a run that was refused leaves a tokenizer"
}

# The same text as byte pairs.
token_files() {
  "$tutti" data tokenize text/train.txt --to tokens --vocabulary 300 --validation 0.2 --shard 3000 >tokenize.log || fail "cannot tokenize"
  "$tutti" data verify tokens tokens >verify.log || fail "token files are not sound"
  [ -f tokens/train-00001.tokens ] || fail "not several shards"
  "$tutti" data inspect tokens >inspected_tokens.toml || fail "cannot inspect token files"
  grep -q '^#.*a vocabulary of 300 (bpe)' inspected_tokens.toml || fail "inspect does not know byte pairs"
  set -- --set data.dataset=tokens --set data.dir=tokens
  expect 0 pairs "$@"
  expect 0 pairs2 --ranks 2 --set run.replicas=2 --set batch.local=4 "$@"
  "$tutti" generate pairs --prompt 'THE end' --tokens 20 >pairs.txt || fail "cannot generate byte pairs"
  [ "$(head -c 7 pairs.txt)" = 'THE end' ] || fail "a prompt of any bytes"
  "$tutti" infer pairs/config.toml --weights pairs --split validation --labels --output labels.npy >labels.log 2>&1 && fail "labels of a text"
  says labels 'labels: of a text'
  documents
  set -- --set data.dataset=tokens --set data.dir=tokens
  truncate -s -2 tokens/train-00001.tokens
  expect 1 cut "$@"
  says cut 'tokens/train-00001.tokens: its header says .* tokens of 2 bytes'
  rm tokens/train-00001.tokens
  expect 1 lacks "$@"
  says lacks 'shard .* of .*name all shards'
}

# A generated text to a model that writes: the same bits on one rank, on two and after a resume; a run keeps its tokenizer.
case_text() {
  "$tutti" data generate text text --train 400 --test 60 --words 20 --seed 3 >generate.log || fail "cannot generate a text"
  "$tutti" data inspect text >inspected.toml || fail "cannot inspect a text"
  "$tutti" train inspected.toml --output-dir inspected --fresh --max-steps 3 --set plan.measure=false >inspected.log 2>&1 || fail "what inspect suggests does not train"
  config=$configs/text.toml
  expect 0 one
  in_parts 7 20 part
  same_weights one part 20
  expect 0 together --set run.replicas=2 --set batch.local=4 --set data.windows=random
  expect 0 apart --ranks 2 --set run.replicas=2 --set batch.local=4 --set data.windows=random
  same_weights together apart 20
  cmp -s one/checkpoints/step_0000020/weights.safetensors together/checkpoints/step_0000020/weights.safetensors && fail "random windows are those in order"
  "$tutti" eval one/config.toml --weights one >eval1.log 2>&1 || fail "cannot evaluate"
  mv text/train.txt train.txt
  "$tutti" eval one/config.toml --weights one >eval2.log 2>&1 || fail "an evaluation needs the training text"
  mv train.txt text/train.txt
  [ "$(grep -o 'loss.*' eval1.log)" = "$(grep -o 'loss.*' eval2.log)" ] || fail "the run's own characters give another evaluation"
  write_on
  token_files
  expect 2 window --set data.window=100000
  says window 'lower data.window'
  expect 2 cached --set data.cache.memory=1000000
  says cached 'data.cache keeps samples'
  printf 'the \303\251' >>text/validation.txt
  expect 2 other
  says other 'text/validation.txt: the character .* is not in the vocabulary'
  printf '\377' >>text/train.txt
  expect 1 bad
  says bad 'text/train.txt: byte .*is no UTF-8'
}
