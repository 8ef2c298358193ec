#include <memory>

#include "tutti/backend/conformance/op_case_line.h"
#include "tutti/ops/rank_sums.h"
#include "tutti/ops/sequence/attention.h"
#include "tutti/ops/sequence/layer_norm.h"
#include "tutti/ops/sequence/lookup.h"
#include "tutti/ops/sequence/swiglu.h"
#include "tutti/ops/sequence/token_head.h"
#include "tutti/ops/sequence/token_loss.h"
#include "tutti/ops/sequence/token_slice.h"
#include "tutti/ops/sequence/waves.h"

namespace tutti {
namespace {

int64_t count_of(CaseLine& line, const char* word, int64_t otherwise) {
  return static_cast<int64_t>(line.number(word, static_cast<double>(otherwise)));
}

/// EXTENTS describe the result, n, c and t.
void attention_case(CaseLine& line, OpCase& made) {
  const int64_t n = line.x[0], c = line.x[1], t = line.x[2];
  AttentionAttributes a{.heads = count_of(line, "heads", 1), .causal = line.has("causal")};
  a.key_heads = count_of(line, "key_heads", a.heads);
  a.scale = static_cast<float>(line.number("scale", 0));
  if (line.has("separate")) a.inputs = AttentionInputs::separate;
  if (line.has("q_and_kv")) a.inputs = AttentionInputs::q_and_kv;
  if (line.has("segments")) a.mask = AttentionMask::segments;
  if (line.has("hidden")) a.mask = AttentionMask::keys;
  a.dropout = static_cast<float>(line.number("dropout", 0));
  a.salt = 0x5EED;
  a.first_head = count_of(line, "first_head", 0);
  a.whole = line.has("whole");
  const int64_t keys = count_of(line, "keys", t), k = c / a.heads * a.key_heads;
  CaseInputs in(made);
  if (line.op == "attention_grad") {
    in.batched(line.x, line.dtype).batched(line.x, line.dtype);
    in.batched({n, a.heads, t}, DType::f32, Fill::positive);
    made.problem.op = std::make_shared<AttentionGrad>(a);
  } else {
    made.problem.op = std::make_shared<Attention>(a);
  }
  switch (a.inputs) {
    case AttentionInputs::packed: in.batched({n, c + 2 * k, t}, line.dtype); break;
    case AttentionInputs::q_and_kv:
      in.batched(line.x, line.dtype).batched({n, 2 * k, keys}, line.dtype);
      break;
    case AttentionInputs::separate:
      in.batched(line.x, line.dtype).batched({n, k, keys}, line.dtype);
      in.batched({n, k, keys}, line.dtype);
      break;
  }
  made.labels = 3;
  if (a.mask != AttentionMask::none)  // numbers of both signs hide some keys
    in.batched({n, keys}, DType::i32,
               a.mask == AttentionMask::segments ? Fill::label : Fill::normal);
}

void norm_case(CaseLine& line, OpCase& made) {
  const LayerNormAttributes a{.kind = line.has("rms") ? LayerNormKind::rms : LayerNormKind::layer};
  const Shape channels{line.x[1]};
  CaseInputs in(made);
  in.batched(line.x, line.dtype);
  if (line.op == "layer_norm_grad") {
    in.batched(line.x, line.dtype).free(channels);
    made.problem.op = std::make_shared<LayerNormGrad>(a);
    return;
  }
  in.free(channels);
  if (a.has_beta()) in.free(channels);
  made.problem.op = std::make_shared<LayerNorm>(a);
}

/// Uses logits with labels far below 0 and above the vocabulary among others.
void token_loss_case(CaseLine& line, OpCase& made) {
  const TokenLossAttributes a{.label_smoothing = static_cast<float>(line.number("smoothing", 0)),
                              .scale = static_cast<float>(line.number("scale", 1))};
  CaseInputs in(made);
  if (line.op == "count_tokens") {
    in.batched(line.x, DType::i32);
    made.problem.op = std::make_shared<CountTokens>(count_of(line, "rows", 20));
    return;
  }
  const int64_t n = line.x[0], t = line.x[2];
  in.batched(line.x, line.dtype).batched({n, t}, DType::i32);
  if (line.op == "token_hits") {
    made.problem.op = std::make_shared<TokenHits>();
    return;
  }
  in.fixed({}, Fill::positive);
  if (line.op == "token_loss_grad") {
    in.batched({n, 1, t}, DType::f32, Fill::positive);
    made.problem.op = std::make_shared<TokenLossGrad>(a);
  } else {
    made.problem.op = std::make_shared<TokenLoss>(a);
  }
}

/// EXTENTS describe the output layer's input, "rows" the tokens.
void token_head_case(CaseLine& line, OpCase& made) {
  const int64_t n = line.x[0], c = line.x[1], t = line.x[2], rows = count_of(line, "rows", 50);
  made.labels = rows + 2;  // some are no tokens
  CaseInputs(made)
      .batched(line.x, line.dtype)
      .free({rows, c, 1})
      .batched({n, t}, DType::i32, Fill::label)
      .fixed({}, Fill::positive);
  TokenHeadAttributes a{.loss = {.label_smoothing = static_cast<float>(line.number("smoothing", 0)),
                                 .scale = static_cast<float>(line.number("scale", 1))},
                        .hits = line.has("hits"),
                        .data = line.has("dx"),
                        .weights = line.has("dw")};
  made.problem.op = std::make_shared<TokenHead>(a);
  made.problem.out_free.resize(made.problem.out().size());
  if (a.weights) made.problem.out_free.back() = true;
}

/// Positions are 0, 1, ..., or "given": numbers of both signs.
void wave_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  in.batched(line.x, line.dtype);
  if (line.has("given")) in.batched({line.x[0], line.x[2]}, DType::i32);
  if (line.op == "add_sinusoids") {
    made.problem.op = std::make_shared<AddSinusoids>(line.number("base", 10000));
    return;
  }
  made.problem.op =
      std::make_shared<Rotate>(RotationAttributes{.heads = count_of(line, "heads", 1),
                                                  .width = count_of(line, "width", line.x[1]),
                                                  .base = line.number("base", 10000),
                                                  .back = line.has("back")});
}

void swiglu_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  in.batched(line.x, line.dtype).batched(line.x, line.dtype);
  if (line.op == "swiglu") {
    made.problem.op = std::make_shared<SwiGlu>();
    return;
  }
  in.batched(line.x, line.dtype);
  made.problem.op = std::make_shared<SwiGluGrad>();
}

/// EXTENTS describe a rank's logits, which belong to tokens FIRST and up of ALL.
void token_slice_case(CaseLine& line, OpCase& made) {
  const TokenLossAttributes a{.label_smoothing = static_cast<float>(line.number("smoothing", 0)),
                              .scale = static_cast<float>(line.number("scale", 1))};
  const int64_t n = line.x[0], count = line.x[1], t = line.x[2];
  const VocabularySlice slice{count_of(line, "first", 0), count, count_of(line, "all", count)};
  made.labels = slice.all;
  CaseInputs in(made);
  in.batched(line.x, line.dtype).batched({n, t}, DType::i32, Fill::label);
  if (line.op == "token_statistics") {
    made.problem.op = std::make_shared<TokenStatistics>(slice);
    return;
  }
  if (line.op == "token_rivals") {
    made.problem.op = std::make_shared<TokenRivals>(slice);
    return;
  }
  in.fixed({}, Fill::positive);
  const int64_t ranks = count_of(line, "ranks", 2);
  if (line.op == "token_loss_of_ranks_grad") {
    in.batched({n, 1, t}, DType::f32, Fill::positive);
    made.problem.op = std::make_shared<TokenLossOfRanksGrad>(a, slice);
    return;
  }
  for (int64_t r = 0; r < ranks; ++r) in.batched({n, 3, t}, DType::f32);
  made.problem.op = std::make_shared<TokenLossOfRanks>(a, slice, static_cast<int>(ranks));
}

/// EXTENTS describe the rivals, n, 3 and t.
void rank_hits_case(CaseLine& line, OpCase& made) {
  const int64_t ranks = count_of(line, "ranks", 2), vocabulary = count_of(line, "all", 3);
  made.labels = vocabulary;
  CaseInputs in(made);
  in.batched({line.x[0], line.x[2]}, DType::i32, Fill::label);
  for (int64_t r = 0; r < ranks; ++r) in.batched(line.x, DType::f32);
  made.problem.op = std::make_shared<TokenHitsOfRanks>(vocabulary, static_cast<int>(ranks));
}

void rank_sum_case(CaseLine& line, OpCase& made) {
  const RankGroup group{.ranks = static_cast<int>(count_of(line, "ranks", 2)), .me = 0};
  CaseInputs in(made);
  for (int r = 0; r < group.ranks; ++r) in.batched(line.x, line.dtype);
  const bool bias = line.has("bias");
  if (bias) in.fixed({line.x[1]});
  made.problem.op = std::make_shared<SumOfRanks>(group, bias);
}

}  // namespace

void sequence_case(CaseLine& line, OpCase& made) {
  if (line.op == "sum_of_ranks") return rank_sum_case(line, made);
  if (line.op == "token_hits_of_ranks") return rank_hits_case(line, made);
  if (line.op == "token_statistics" || line.op == "token_rivals" ||
      line.op.starts_with("token_loss_of_ranks"))
    return token_slice_case(line, made);
  if (line.op.starts_with("attention")) return attention_case(line, made);
  if (line.op.starts_with("layer_norm")) return norm_case(line, made);
  if (line.op == "token_head") return token_head_case(line, made);
  if (line.op.starts_with("token_") || line.op == "count_tokens")
    return token_loss_case(line, made);
  if (line.op == "add_sinusoids" || line.op == "rotate") return wave_case(line, made);
  if (line.op.starts_with("swiglu")) return swiglu_case(line, made);
  const int64_t n = line.x[0], c = line.x[1], t = line.x[2], rows = count_of(line, "rows", 20);
  CaseInputs in(made);
  if (line.op == "lookup") {
    made.problem.op = std::make_shared<Lookup>(line.dtype, count_of(line, "first", 0));
    in.free({rows, c}).batched({n, t}, DType::i32);
  } else if (line.op == "lookup_grad") {
    const bool adds = line.has("adds");
    made.problem.op =
        std::make_shared<LookupGrad>(Shape{rows, c, 1}, adds, count_of(line, "first", 0));
    in.batched(line.x, line.dtype).batched({n, t}, DType::i32);
    if (adds) in.fixed({rows, c, 1});
  } else if (line.op == "add_positions") {
    made.problem.op = std::make_shared<AddPositions>(count_of(line, "first", 0));
    in.batched(line.x, line.dtype).fixed(line.has("table") ? Shape{1, rows, c} : Shape{rows, c});
  } else if (line.op == "prepend_token") {
    made.problem.op = std::make_shared<PrependToken>();
    in.batched(line.x, line.dtype).fixed({1, 1, c});
  } else {
    made.problem.op = std::make_shared<AddPositionsGrad>(
        line.has("table") ? Shape{1, rows, c} : Shape{rows, c}, count_of(line, "first", 0));
    in.batched(line.x, line.dtype);
  }
}

}  // namespace tutti
