#include <memory>

#include "tutti/backend/conformance/op_case_line.h"
#include "tutti/ops/attention.h"
#include "tutti/ops/layer_norm.h"
#include "tutti/ops/lookup.h"
#include "tutti/ops/token_loss.h"

namespace tutti {
namespace {

int64_t count_of(CaseLine& line, const char* word, int64_t otherwise) {
  return static_cast<int64_t>(line.number(word, static_cast<double>(otherwise)));
}

/// EXTENTS are those of the result, n, c and t.
void attention_case(CaseLine& line, OpCase& made) {
  const int64_t n = line.x[0], c = line.x[1], t = line.x[2];
  AttentionAttributes a{.heads = count_of(line, "heads", 1), .causal = line.has("causal")};
  a.key_heads = count_of(line, "key_heads", a.heads);
  a.scale = static_cast<float>(line.number("scale", 0));
  if (line.has("separate")) a.inputs = AttentionInputs::separate;
  if (line.has("q_and_kv")) a.inputs = AttentionInputs::q_and_kv;
  if (line.has("segments")) a.mask = AttentionMask::segments;
  if (line.has("hidden")) a.mask = AttentionMask::keys;
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

/// Logits of numbers far below 0 and above the vocabulary among the labels.
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
  in.batched(line.x, line.dtype).batched({n, t}, DType::i32).fixed({}, Fill::positive);
  if (line.op == "token_loss_grad") {
    in.batched({n, 1, t}, DType::f32, Fill::positive);
    made.problem.op = std::make_shared<TokenLossGrad>(a);
  } else {
    made.problem.op = std::make_shared<TokenLoss>(a);
  }
}

}  // namespace

void sequence_case(CaseLine& line, OpCase& made) {
  if (line.op.starts_with("attention")) return attention_case(line, made);
  if (line.op.starts_with("layer_norm")) return norm_case(line, made);
  if (line.op.starts_with("token_loss") || line.op == "count_tokens")
    return token_loss_case(line, made);
  const int64_t n = line.x[0], c = line.x[1], t = line.x[2], rows = count_of(line, "rows", 20);
  CaseInputs in(made);
  if (line.op == "lookup") {
    made.problem.op = std::make_shared<Lookup>(line.dtype);
    in.free({rows, c}).batched({n, t}, DType::i32);
  } else if (line.op == "lookup_grad") {
    const bool adds = line.has("adds");
    made.problem.op = std::make_shared<LookupGrad>(Shape{rows, c, 1}, adds);
    in.batched(line.x, line.dtype).batched({n, t}, DType::i32);
    if (adds) in.fixed({rows, c, 1});
  } else if (line.op == "add_positions") {
    made.problem.op = std::make_shared<AddPositions>();
    in.batched(line.x, line.dtype).fixed({rows, c});
  } else {
    made.problem.op = std::make_shared<AddPositionsGrad>(rows);
    in.batched(line.x, line.dtype);
  }
}

}  // namespace tutti
