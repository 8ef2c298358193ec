# Click logs: networks that look categories up in tables.

# The same bits after an end in the middle of an epoch; what cannot be done with tables yet is refused, and a bad line is named.
case_clicks() {
  "$tutti" data generate clicks clicks --train 640 --test 200 --vocabulary 200 --seed 3 >generate.log || fail "cannot generate clicks"
  config=$here/clicks.toml
  expect 0 one
  says one 'auc [0-9]'
  expect 0 part --max-steps 7
  expect 0 part --resume --max-steps 20
  same_weights one part 20
  "$tutti" train "$config" --output-dir still --fresh --set 'model.freeze=["emb_l.*"]' >still.log 2>&1 || fail "tables cannot be frozen"
  says still 'of the parameters are trained'
  cmp -s one/checkpoints/step_0000020/weights.safetensors still/checkpoints/step_0000020/weights.safetensors &&
    fail "tables that are frozen train as those that are not"
  expect 2 two --ranks 2 --set run.replicas=2
  says two 'looks rows up in tables.*2 ranks'
  expect 2 many --set run.replicas=2
  expect 2 added --set batch.accumulate=2
  expect 2 adam --set optimizer.name=adam
  says adam 'optimizer.name = "sgd"'
  expect 2 momentum --set optimizer.momentum=0.9
  expect 2 rows --set data.table_rows=5,6
  says rows 'data.table_rows has 2 numbers'
  sed -i '3s/^./7/' clicks/train/clicks-00000.txt
  expect 1 bad
  says bad 'clicks-00000.txt:3: column 1: expected the label 0 or 1'
}
