# Cases of training_test.sh. Language models.
# shellcheck shell=bash disable=SC2154

case_language() {
  # Lines that a model can learn by heart: the same bits on one rank, on two, and through a resume.
  for i in $(seq 1 120); do echo "the quick brown fox number $((i % 3)) jumps over the lazy dog"; done >text.txt
  config=$configs/language.toml
  expect 0 one
  expect 0 two --ranks 2
  expect 0 part --max-steps 13
  expect 0 part --resume
  for other in two part; do same_weights one $other "$(latest_step one)"; done
  says one 'loss [0-9.]*, perplexity [0-9.]*, bits [0-9.]*'
  grep '"event":"step"' one/record.jsonl | grep -Eo '"loss":[^,}]*' | cut -d: -f2 |
    awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(last < 0.5 * first) }' || fail "it does not learn the text by heart"
  # Files hold the layers' weights as the published ones do.
  head -c 20000 one/checkpoints/best/weights.safetensors | grep -aEq '"h.0.attn.c_attn.weight":\{"dtype":"F32","shape":\[48,144\]' || fail "c_attn.weight has another shape"
  head -c 20000 one/checkpoints/best/weights.safetensors | grep -aEq '"wte.weight":\{"dtype":"F32","shape":\[[0-9]+,48\]' || fail "wte.weight has another shape"
  # A model that goes on from given weights begins where those ended.
  cp one/checkpoints/best/weights.safetensors given.safetensors
  "$tutti" eval "$config" --weights one --json >run.json 2>eval.log || fail "eval"
  "$tutti" eval "$config" --weights given.safetensors --json >file.json 2>eval.log || fail "eval of a file"
  [ "$(grep -Eo '"perplexity": *[0-9.]*' run.json)" = "$(grep -Eo '"perplexity": *[0-9.]*' file.json)" ] || fail "a file is judged otherwise"
  expect 0 narrow --set run.precision=bf16 --max-steps 2
  expect 2 wrong --set model.heads=5
  says wrong 'a width of 48 is not a multiple of 5 heads'
  # A mistake in what shall replace a run leaves the run where it is.
  expect 2 one --fresh --set model.heads=5
  [ -d one/checkpoints ] && [ ! -e one.1 ] || fail "the run is set aside for one that cannot be"
  # Weights that the last update has spoilt are no result, and not the best ones.
  expect 1 spoilt --ranks 2 --lr 1e30 --epochs 0 --max-steps 1
  says spoilt 'the validation loss is (NaN|infinite) after 1 steps'
  [ "$(grep -c 'validation loss is' spoilt.log)" = 1 ] || fail "both ranks say it: $(cat spoilt.log)"
  [ ! -e spoilt/checkpoints/best ] || fail "NaN is the best"
  expect 0 longer --epochs 0 --max-steps 2
  expect 0 longer --epochs 0 --max-steps 4 --resume
  says longer 'the schedule spans the run, run.max_steps = 4 now and run.max_steps = 2 before'
}

case_llama() {
  for i in $(seq 1 120); do echo "the quick brown fox number $((i % 3)) jumps over the lazy dog"; done >text.txt
  config=$configs/language.toml
  local llama=(--set model.name=llama --set model.context=0 --set model.dropout=-1 --set model.heads=4 --set model.key_heads=2)
  expect 0 one "${llama[@]}"
  expect 0 part "${llama[@]}" --max-steps 13
  expect 0 part "${llama[@]}" --resume
  same_weights one part "$(latest_step one)"
  says one 'bits_per_byte [0-9.]*'
  head -c 20000 one/checkpoints/best/weights.safetensors | grep -aEq '"model.layers.1.self_attn.k_proj.weight":\{"dtype":"F32","shape":\[24,48\]' || fail "k_proj.weight has another shape"
  "$tutti" generate one --prompt "the quick" --tokens 12 --temperature 0 >text.out 2>generate.log || fail "generate"
  grep -q "the quick brown fox" text.out || fail "it has not learned the text: $(cat text.out)"
  # LoRA begins where the given weights ended, trains its own alone, and goes on.
  cp one/checkpoints/best/weights.safetensors given.safetensors
  local lora=("${llama[@]}" --set model.weights=given.safetensors --set model.lora_rank=2 --set 'model.lora_layers=["*.q_proj", "*.v_proj"]')
  expect 0 lora "${lora[@]}" --max-steps 13
  says lora '672 of the parameters are trained'
  expect 0 lora "${lora[@]}" --resume
  "$tutti" eval lora/config.toml --weights lora --json >lora.json 2>eval.log || fail "eval of LoRA"
  expect 2 none "${llama[@]}" --set model.lora_rank=2 --set 'model.lora_layers=["*.c_attn"]'
  says none "nothing is called '\*.c_attn'"
}

case_tensor() {
  # Ranks that share layers do as one rank, up to rounding; they evaluate alike, and a run goes on with the same bits, or on one rank.
  for i in $(seq 1 120); do echo "the quick brown fox number $((i % 3)) jumps over the lazy dog"; done >text.txt
  config=$configs/language.toml
  local shared="--set model.heads=4 --replicas 1"
  expect 0 alone $shared --max-steps 10
  expect 0 two $shared --max-steps 10 --ranks 2 --tensor 2
  near alone two
  says two '2 ranks share each replica.s tensors: 4 layers by columns, 4 by rows, 2 attentions by heads, embedding and loss by vocabulary'
  expect 0 own $shared --max-steps 10 --ranks 2 --tensor 2 --set parallel.sequence=true
  near alone own
  in_parts 6 10 part $shared --ranks 2 --tensor 2
  same_weights two part 10
  expect 0 part $shared --max-steps 12 --resume --resume-anyway parallel.tensor
  expect 0 grid --set model.heads=4 --max-steps 2 --ranks 4 --tensor 2 --set optimizer.clip_norm=0.1
  for how in "" "--ranks 2 --tensor 2"; do
    "$tutti" eval "$config" --set model.heads=4 --weights two --json $how >judged.json 2>eval.log || fail "eval $how"
    grep -Eo '"loss": [0-9.]{6}' judged.json >>judged
  done
  [ "$(sort -u judged | wc -l)" -eq 1 ] || fail "it is judged otherwise: $(cat judged)"
  expect 2 odd $shared --ranks 3 --tensor 2
  says odd 'parallel.tensor = 2: 3 rank.s. are no replicas'
  expect 2 sharded $shared --ranks 2 --tensor 2 --set comm.sharded_update=true
  says sharded 'parallel.tensor = 2 goes without comm.sharded_update'
  expect 2 apart --set model.heads=4 --ranks 2 --tensor 2 --sync local:2
  says apart 'goes without parallel.tensor'
  # Each replica has running statistics of its own, also after a resume.
  config=statistics.toml
  printf '[data]\ndataset = "lattices"\ngenerate_train = 80\ngenerate_test = 8\ntransforms = ["image: divide 255, normalise"]\n[batch]\nlocal = 5\n' >$config
  for layer in 'conv"\nchannels = 8\nkernel = 3\nstride = 2' 'batch_norm"\nactivation = "relu"' 'flatten"' 'dense"\noutputs = 16\nactivation = "relu"' 'dense"\noutputs = 5'; do
    printf '[[model.layer]]\ntype = "%b\n' "$layer" >>$config
  done
  expect 0 whole --ranks 4 --tensor 2 --max-steps 4
  in_parts 2 4 goes_on --ranks 4 --tensor 2
  same whole goes_on 4
}
