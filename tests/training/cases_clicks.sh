# Click logs: networks that look categories up in tables.

# What ranks have learned together, one writes down: weights.safetensors has all but the tables, and what the tables have learned shows
# in the first metric and in every later weight.
same_clicks() {
  same_weights "$1" "$2" "${3:-20}"
  for name in "$1" "$2"; do
    grep -o '"auc":[0-9.e-]*' "$name/record.jsonl" | tail -n 1 >"$name.auc"
    [ -s "$name.auc" ] || fail "$name has no auc"
  done
  cmp -s "$1.auc" "$2.auc" || fail "$1 and $2 have learned other tables"
}

# Tables are dealt out to ranks, by rows where one is large; a resume on other ranks finds its rows.
share_tables() {
  shared="--set run.replicas=2 --set batch.local=32 --set data.table_rows=[900,40,40,40,40,40,40,40,40,40,40,40,40,40,40,40,40,40,40,40,40,40,40,40,40,40]"
  # shellcheck disable=SC2086
  {
    expect 0 together $shared --set optimizer.tables=adagrad
    expect 0 apart --ranks 2 $shared --set optimizer.tables=adagrad
    same_clicks together apart
    expect 0 moved --ranks 2 $shared --set optimizer.tables=adagrad --max-steps 7
    expect 0 moved --resume --max-steps 20 $shared --set optimizer.tables=adagrad
    same_clicks together moved
    expect 0 back $shared --set optimizer.tables=adagrad --max-steps 7
    expect 0 back --ranks 2 --resume --max-steps 20 $shared --set optimizer.tables=adagrad
    same_clicks together back
  }
  [ -f apart/checkpoints/step_0000020/ranks/1.safetensors ] || fail "rank 1 has written no tables"
  "$tutti" eval together/config.toml --weights together >eval1.log 2>&1 || fail "cannot evaluate tables"
  "$tutti" eval apart/config.toml --weights apart --ranks 2 >eval2.log 2>&1 || fail "cannot evaluate tables on two ranks"
  [ "$(grep -o 'auc.*' eval1.log)" = "$(grep -o 'auc.*' eval2.log)" ] || fail "eval of one rank and of two differ"
}

# Logs whose columns hold several categories, with rows from a file.
bags_and_vocabularies() {
  mkdir -p bags/train bags/validation
  awk 'BEGIN { print "label,I1,C1,C2"; for (i = 0; i < 640; ++i) print (i % 3 == 0) "," i % 7 ",a" i % 5 ":0.5|b" i % 3 ",c" i % 11 }' >bags/train/log.csv
  cp bags/train/log.csv bags/validation/log.csv
  bags="--set data.dir=bags --set data.vocabulary=words.txt --set data.bag_length=[2,1] --set data.bag_weights=true --set model.pooling=mean"
  sed 's/^dir = .*/dir = "bags"\nvocabulary = "words.txt"\nbag_length = [2, 1]\nbag_weights = true/; s/^table_rows.*//' "$config" >bags.toml
  "$tutti" data vocabulary bags.toml --minimum 4 >vocabulary.log 2>&1 || fail "no vocabulary"
  grep -q 'column 8' words.txt || fail "the first column has 8 categories"
  # shellcheck disable=SC2086
  expect 0 bags $bags
  # shellcheck disable=SC2086
  expect 0 pairs --ranks 2 --set run.replicas=2 --set batch.local=32 $bags --set model.interaction=cat
  says pairs 'auc [0-9]'
}

# The same bits after an end in the middle of an epoch; what cannot be done with tables yet is refused, and a bad line is named.
# Lines without labels have the logits that they have with them, whatever those say.
predict_without_labels() {
  local log=clicks/validation/clicks-00000.txt
  [ -e "$log" ] || log=$(find clicks -path '*train*' -prune -o -name '*.txt' -print | head -n 1)
  cut -f 2- "$log" >unlabelled.txt
  "$tutti" infer "$config" --weights one --input "$log" --output labelled.npy >infer.log 2>&1 || fail "infer of a log: $(tail -n 3 infer.log)"
  "$tutti" infer "$config" --weights one --input unlabelled.txt --output unlabelled.npy >infer.log 2>&1 || fail "infer without labels: $(tail -n 3 infer.log)"
  cmp labelled.npy unlabelled.npy || fail "labels change predictions"
  [ "$(sed -n 2p unlabelled.npy.files.txt)" = "$(printf 'unlabelled.txt\t2')" ] || fail "no line is named: $(sed -n 2p unlabelled.npy.files.txt)"
  "$tutti" infer "$config" --weights one --input unlabelled.txt --field 'dense: from x axis 0' --output no.npy >infer.log 2>&1 && fail "a log takes --field"
  says infer 'says itself what its columns are'
  cut -f 3- "$log" >short.txt
  "$tutti" infer "$config" --weights one --input short.txt --output no.npy >infer.log 2>&1 && fail "a log without a number is read"
  says infer 'the first line has 38 columns.* the label may be missing'
}

case_clicks() {
  "$tutti" data generate clicks clicks --train 640 --test 200 --vocabulary 200 --seed 3 >generate.log || fail "cannot generate clicks"
  "$tutti" data inspect clicks >inspected.toml || fail "cannot inspect clicks"
  grep -q '^# .*: a click log, [0-9]* lines' inspected.toml || fail "inspect does not know click logs"
  "$tutti" train inspected.toml --output-dir inspected --fresh >inspected.log 2>&1 || fail "what inspect suggests does not train"
  config=$configs/clicks.toml
  expect 0 one
  says one 'auc [0-9]'
  in_parts 7 20 part
  same_weights one part 20
  "$tutti" train "$config" --output-dir still --fresh --set 'model.freeze=["emb_l.*"]' >still.log 2>&1 || fail "tables cannot be frozen"
  says still 'of the parameters are trained'
  cmp -s one/checkpoints/step_0000020/weights.safetensors still/checkpoints/step_0000020/weights.safetensors &&
    fail "tables that are frozen train as those that are not"
  share_tables
  bags_and_vocabularies
  predict_without_labels
  expect 0 adam --set optimizer.name=adam --set optimizer.lr=0.01 --set optimizer.tables=rowwise_adagrad
  expect 2 sharded --ranks 2 --set run.replicas=2 --set comm.sharded_update=true
  says sharded 'comm.sharded_update is not built yet'
  expect 2 uneven --ranks 2 --set run.replicas=3
  says uneven 'each needs as many replicas'
  expect 2 rows --set data.table_rows=5,6
  says rows 'data.table_rows has 2 numbers'
  sed -i '3s/^./7/' clicks/train/clicks-00000.txt
  expect 1 bad
  says bad 'clicks-00000.txt:3: column 1: expected the label 0 or 1'
}
