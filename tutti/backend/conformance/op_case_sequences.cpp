#include "tutti/backend/conformance/case_table.h"
#include "tutti/ops/rank_sums.h"
#include "tutti/ops/sequence/attention.h"
#include "tutti/ops/sequence/layer_norm.h"
#include "tutti/ops/sequence/lookup.h"
#include "tutti/ops/sequence/swiglu.h"
#include "tutti/ops/sequence/token_head.h"
#include "tutti/ops/sequence/token_loss.h"
#include "tutti/ops/sequence/token_slice.h"
#include "tutti/ops/sequence/waves.h"

namespace tutti::backend {
namespace {

ops::TokenLossAttributes token_loss_of(CaseLine& line) {
  return {.label_smoothing = line.real("smoothing", 0), .scale = line.real("scale", 1)};
}

/// EXTENTS describe the result, n, c and t.
void attention_case(CaseLine& line, OpCase& made) {
  const int64_t n = line.x[0], c = line.x[1], t = line.x[2];
  ops::AttentionAttributes a{.heads = line.whole_number("heads", 1), .causal = line.has("causal")};
  a.key_heads = line.whole_number("key_heads", a.heads);
  a.scale = line.real("scale", 0);
  if (line.has("separate")) a.inputs = ops::AttentionInputs::separate;
  if (line.has("q_and_kv")) a.inputs = ops::AttentionInputs::q_and_kv;
  if (line.has("segments")) a.mask = ops::AttentionMask::segments;
  if (line.has("hidden")) a.mask = ops::AttentionMask::keys;
  a.dropout = line.real("dropout", 0);
  a.salt = 0x5EED;
  a.first_head = line.whole_number("first_head", 0);
  a.whole = line.has("whole");
  const int64_t keys = line.whole_number("keys", t), k = c / a.heads * a.key_heads;
  CaseInputs in(made);
  if (line.op == "attention_grad") {
    in.batched(line.x, line.dtype).batched(line.x, line.dtype);
    in.batched({n, a.heads, t}, DType::f32, Fill::positive);
    made.use<ops::AttentionGrad>(a);
  } else {
    made.use<ops::Attention>(a);
  }
  switch (a.inputs) {
    case ops::AttentionInputs::packed: in.batched({n, c + 2 * k, t}, line.dtype); break;
    case ops::AttentionInputs::q_and_kv:
      in.batched(line.x, line.dtype).batched({n, 2 * k, keys}, line.dtype);
      break;
    case ops::AttentionInputs::separate:
      in.batched(line.x, line.dtype).batched({n, k, keys}, line.dtype);
      in.batched({n, k, keys}, line.dtype);
      break;
  }
  made.labels = 3;
  if (a.mask != ops::AttentionMask::none)  // numbers of both signs hide some keys
    in.batched({n, keys}, DType::i32,
               a.mask == ops::AttentionMask::segments ? Fill::label : Fill::normal);
}

void norm_case(CaseLine& line, OpCase& made) {
  const ops::LayerNormAttributes a{.kind = line.has("rms") ? ops::LayerNormKind::rms
                                                           : ops::LayerNormKind::layer};
  const Shape channels{line.x[1]};
  CaseInputs in(made);
  in.batched(line.x, line.dtype);
  if (line.op == "layer_norm_grad") {
    in.batched(line.x, line.dtype).free(channels);
    made.use<ops::LayerNormGrad>(a);
    return;
  }
  in.free(channels);
  if (a.has_beta()) in.free(channels);
  made.use<ops::LayerNorm>(a);
}

/// Uses logits with labels far below 0 and above the vocabulary among others.
void token_loss_case(CaseLine& line, OpCase& made) {
  const ops::TokenLossAttributes a = token_loss_of(line);
  CaseInputs in(made);
  if (line.op == "count_tokens") {
    in.batched(line.x, DType::i32);
    made.use<ops::CountTokens>(line.whole_number("rows", 20));
    return;
  }
  const int64_t n = line.x[0], t = line.x[2];
  in.batched(line.x, line.dtype).batched({n, t}, DType::i32);
  if (line.op == "token_hits") {
    made.use<ops::TokenHits>();
    return;
  }
  in.fixed({}, Fill::positive);
  if (line.op == "token_loss_grad") {
    in.batched({n, 1, t}, DType::f32, Fill::positive);
    made.use<ops::TokenLossGrad>(a);
  } else {
    made.use<ops::TokenLoss>(a);
  }
}

/// EXTENTS describe the output layer's input, "rows" the tokens.
void token_head_case(CaseLine& line, OpCase& made) {
  const int64_t n = line.x[0], c = line.x[1], t = line.x[2], rows = line.whole_number("rows", 50);
  made.labels = rows + 2;  // some are no tokens
  CaseInputs(made)
      .batched(line.x, line.dtype)
      .free({rows, c, 1})
      .batched({n, t}, DType::i32, Fill::label)
      .fixed({}, Fill::positive);
  ops::TokenHeadAttributes a{.loss = token_loss_of(line),
                             .hits = line.has("hits"),
                             .data = line.has("dx"),
                             .weights = line.has("dw")};
  made.use<ops::TokenHead>(a);
  made.problem.out_free.resize(made.problem.out().size());
  if (a.weights) made.problem.out_free.back() = true;
}

/// Positions are 0, 1, ..., or "given": numbers of both signs.
void wave_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  in.batched(line.x, line.dtype);
  if (line.has("given")) in.batched({line.x[0], line.x[2]}, DType::i32);
  if (line.op == "add_sinusoids") {
    made.use<ops::AddSinusoids>(line.number("base", 10000));
    return;
  }
  made.use<ops::Rotate>(ops::RotationAttributes{.heads = line.whole_number("heads", 1),
                                                .width = line.whole_number("width", line.x[1]),
                                                .base = line.number("base", 10000),
                                                .back = line.has("back")});
}

void swiglu_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  in.batched(line.x, line.dtype).batched(line.x, line.dtype);
  if (line.op == "swiglu") {
    made.use<ops::SwiGlu>();
    return;
  }
  in.batched(line.x, line.dtype);
  made.use<ops::SwiGluGrad>();
}

/// EXTENTS describe a rank's logits, which belong to tokens FIRST and up of ALL.
void token_slice_case(CaseLine& line, OpCase& made) {
  const ops::TokenLossAttributes a = token_loss_of(line);
  const int64_t n = line.x[0], count = line.x[1], t = line.x[2];
  const ops::VocabularySlice slice{line.whole_number("first", 0), count,
                                   line.whole_number("all", count)};
  made.labels = slice.all;
  CaseInputs in(made);
  in.batched(line.x, line.dtype).batched({n, t}, DType::i32, Fill::label);
  if (line.op == "token_statistics") {
    made.use<ops::TokenStatistics>(slice);
    return;
  }
  if (line.op == "token_rivals") {
    made.use<ops::TokenRivals>(slice);
    return;
  }
  in.fixed({}, Fill::positive);
  const int64_t ranks = line.whole_number("ranks", 2);
  if (line.op == "token_loss_of_ranks_grad") {
    in.batched({n, 1, t}, DType::f32, Fill::positive);
    made.use<ops::TokenLossOfRanksGrad>(a, slice);
    return;
  }
  for (int64_t r = 0; r < ranks; ++r) in.batched({n, 3, t}, DType::f32);
  made.use<ops::TokenLossOfRanks>(a, slice, static_cast<int>(ranks));
}

/// EXTENTS describe the rivals, n, 3 and t.
void rank_hits_case(CaseLine& line, OpCase& made) {
  const int64_t ranks = line.whole_number("ranks", 2), vocabulary = line.whole_number("all", 3);
  made.labels = vocabulary;
  CaseInputs in(made);
  in.batched({line.x[0], line.x[2]}, DType::i32, Fill::label);
  for (int64_t r = 0; r < ranks; ++r) in.batched(line.x, DType::f32);
  made.use<ops::TokenHitsOfRanks>(vocabulary, static_cast<int>(ranks));
}

void rank_sum_case(CaseLine& line, OpCase& made) {
  const ops::RankGroup group{.ranks = static_cast<int>(line.whole_number("ranks", 2)), .me = 0};
  CaseInputs in(made);
  for (int r = 0; r < group.ranks; ++r) in.batched(line.x, line.dtype);
  const bool bias = line.has("bias");
  if (bias) in.fixed({line.x[1]});
  made.use<ops::SumOfRanks>(group, bias);
}

void token_case(CaseLine& line, OpCase& made) {
  const int64_t n = line.x[0], c = line.x[1], t = line.x[2], rows = line.whole_number("rows", 20);
  CaseInputs in(made);
  if (line.op == "lookup") {
    made.use<ops::Lookup>(line.dtype, line.whole_number("first", 0));
    in.free({rows, c}).batched({n, t}, DType::i32);
  } else if (line.op == "lookup_grad") {
    const bool adds = line.has("adds");
    made.use<ops::LookupGrad>(Shape{rows, c, 1}, adds, line.whole_number("first", 0));
    in.batched(line.x, line.dtype).batched({n, t}, DType::i32);
    if (adds) in.fixed({rows, c, 1});
  } else if (line.op == "add_positions") {
    made.use<ops::AddPositions>(line.whole_number("first", 0));
    in.batched(line.x, line.dtype).fixed(line.has("table") ? Shape{1, rows, c} : Shape{rows, c});
  } else if (line.op == "prepend_token") {
    made.use<ops::PrependToken>();
    in.batched(line.x, line.dtype).fixed({1, 1, c});
  } else {
    made.use<ops::AddPositionsGrad>(line.has("table") ? Shape{1, rows, c} : Shape{rows, c},
                                    line.whole_number("first", 0));
    in.batched(line.x, line.dtype);
  }
}

}  // namespace

void register_sequence_cases(CaseTable& table) {
  table.add({"attention", "attention_grad"}, attention_case)
      .lines({"n2c24t19 heads3",
              "n3c32t33 heads2 causal",
              "n1c128t70 heads2 causal",
              "n2c20t9 heads4 causal separate",
              "n2c48t21 heads6 key_heads2 causal",
              "n2c16t5 heads2 keys40 q_and_kv",
              "n2c16t5 heads2 keys7 causal separate scale0.3",
              "n2c32t37 heads2 causal segments",
              "n3c16t18 heads1 segments",
              "n2c16t9 heads2 keys35 q_and_kv hidden",
              "n2c8t1 heads8 causal",
              "n1c40t33 heads5 causal whole",
              "n3c48t21 heads6 key_heads3 segments whole",
              "n2c32t150 heads2 causal dropout0.3",
              "n3c16t9 heads2 keys35 q_and_kv hidden dropout0.5",
              "n2c48t21 heads6 key_heads2 causal dropout0.1 first_head6",
              "n3c40t133 heads5 segments dropout0.2 whole",
              "n1c74t33 heads2 causal",
              "n2c38t31 heads2",
              "n1c16t31 heads2 keys44 causal separate",
              "n2c40t29 heads4 key_heads2 keys35 q_and_kv hidden",
              "n1c20t9 heads4 key_heads2 separate"});
  table.add({"layer_norm", "layer_norm_grad"}, norm_case)
      .lines({"n3c48t7", "n2c19t5 rms", "n7c33", "n2c16h3w4 rms"});
  table.add({"token_loss", "token_loss_grad"}, token_loss_case)
      .lines({"n2c50t9", "n3c16t5 smoothing0.1 scale0.5", "n1c131t40"});
  table.add({"lookup", "lookup_grad"}, token_case)
      .lines({"n3c16t9", "n2c21t70 rows37", "n2c21t70 rows37 first5"});
  table.add({"token_loss_of_ranks", "token_loss_of_ranks_grad"}, token_slice_case)
      .lines({"n2c50t9 all80 first20", "n3c16t5 all48 first32 smoothing0.1 scale0.5 ranks3"});
  table.add({"add_positions", "add_positions_grad"}, token_case)
      .lines({"n3c16t9", "n2c21t20 rows20", "n2c21t7 rows20 first9", "n2c48t13 rows13 table"});
  table.add({"swiglu", "swiglu_grad"}, swiglu_case)
      .lines({"n3c48t7", "n2c19t5", "n7c33", "n2c16h3w4"});
  table.add({"lookup_grad"}, token_case).lines({"n2c21t70 rows37 adds"});
  table.add({"prepend_token"}, token_case).lines({"n3c16t9", "n2c21t1"});
  table.add({"add_sinusoids"}, wave_case).lines({"n3c16t9", "n2c21t20 base100", "n2c33t5 given"});
  table.add({"rotate"}, wave_case)
      .lines({"n3c64t9 heads2 width32", "n2c48t7 heads2 width16 back",
              "n2c45t6 heads3 width10 base100", "n2c96t5 heads2 width40 given"});
  table.add({"token_head"}, token_head_case)
      .lines({"n2c8t9 rows50 dx dw", "n5c5t130 rows83 dx dw smoothing0.1 scale0.5",
              "n1c7t5 rows16 dx", "n2c9t30 rows40 dw", "n3c8t20 rows300"})
      .lines({"n2c40t150 rows90 hits"}, {"f32"});
  table.add({"token_statistics"}, token_slice_case)
      .lines({"n2c50t9 all80 first20", "n1c131t40 all131"});
  table.add({"token_rivals"}, token_slice_case).lines({"n2c50t9 all80 first20", "n3c5t40 all5"});
  table.add({"sum_of_ranks"}, rank_sum_case)
      .lines({"n2c19t5 ranks2 bias", "n3c48t7 ranks4", "n7c33 ranks3 bias"});
  table.add({"count_tokens"}, token_loss_case).lines({"n3t17", "n2t3 rows1"}, {"i32"});
  table.add({"token_hits"}, token_loss_case)
      .lines({"n2c3t40"}, {"f32"})
      .lines({"n3c37t5"}, {"bf16"});
  table.add({"token_hits_of_ranks"}, rank_hits_case).lines({"n2c3t40", "n3c3t7 ranks3"}, {"f32"});
}

}  // namespace tutti::backend
