#include "tutti/backend/conformance/op_case.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/backend/conformance/op_case_line.h"
#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"

namespace tutti {
namespace {

using Family = void (*)(CaseLine&, OpCase&);

Family family_of(std::string_view op) {
  const auto is = [op](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, op) != names.end();
  };
  if (is({"conv", "conv_backward_data", "conv_backward_weights", "conv_transpose"}))
    return conv_case;
  if (is({"gather_rows", "add_rows", "sum_parts", "merge_moments", "batch_norm_moments",
          "label_weights"}))
    return parts_case;
  if (op.starts_with("batch_norm_")) return batch_norm_case;
  if (is({"pool", "pool_grad", "global_average_pool", "global_average_pool_grad", "broadcast",
          "spatial_sum", "power_spectrum", "power_spectrum_grad", "resize", "resize_grad"}))
    return pool_case;
  if (op.starts_with("dense")) return dense_case;
  if (is({"add", "mul", "scale", "bias_backward", "dropout", "gaussian_sample", "reorder",
          "activation", "activation_grad"}))
    return pointwise_case;
  if (is({"reshape", "pad", "concat", "slice", "slice_grad", "interaction", "interaction_grad"}))
    return shape_case;
  if (op.starts_with("softmax_cross_entropy") || op.starts_with("pointwise_loss") ||
      op.starts_with("gaussian_kl"))
    return loss_case;
  if (is({"sgd_update", "adam_update", "rmsprop_update", "parameter_norms", "lars_update",
          "lamb_moments", "lamb_update", "weight_average", "gradient_squares"}))
    return update_case;
  if (is({"embedding_bag", "table_update"})) return table_case;
  if (is({"lookup",
          "lookup_grad",
          "add_positions",
          "add_positions_grad",
          "layer_norm",
          "layer_norm_grad",
          "attention",
          "attention_grad",
          "count_tokens",
          "token_head",
          "token_hits",
          "token_hits_of_ranks",
          "token_loss",
          "token_loss_grad",
          "token_rivals",
          "token_statistics",
          "token_loss_of_ranks",
          "token_loss_of_ranks_grad",
          "sum_of_ranks",
          "prepend_token",
          "add_sinusoids",
          "rotate",
          "swiglu",
          "swiglu_grad"}))
    return sequence_case;
  if (op == "clip_scale") return clip_case;
  return nullptr;
}

double draw(Rng& rng, Fill fill, int64_t labels) {
  switch (fill) {
    case Fill::normal: return rng.normal();
    case Fill::positive: return 0.5 + rng.uniform();
    case Fill::unit: return rng.uniform();
    case Fill::label: return rng.below(static_cast<uint32_t>(labels));
  }
  return 0;
}

}  // namespace

OpCase parse_op_case(std::string_view text) {
  CaseLine line(text);
  OpCase made;
  made.text = text;
  const Family family = family_of(line.op);
  if (!family) throw ConfigError(fmt::format("op case '{}': there is no op '{}'", text, line.op));
  family(line, made);
  line.check_all_used();
  if (!made.problem.op) throw ConfigError(fmt::format("op case '{}': words are missing", text));
  made.problem.out();  // refuses shapes that do not fit
  return made;
}

std::vector<Values> random_inputs(const OpCase& op_case, uint64_t seed) {
  std::vector<Values> all;
  for (size_t i = 0; i < op_case.fill.size(); ++i) {
    Rng rng(seed, Purpose::test, i);
    Values& values = all.emplace_back(static_cast<size_t>(op_case.problem.in[i].desc.elements()));
    const double factor = op_case.problem.in[i].desc.dtype == DType::u8 ||
                                  op_case.problem.in[i].desc.dtype == DType::i32
                              ? 40
                              : 1;
    for (double& v : values)
      v = draw(rng, op_case.fill[i], op_case.labels) *
          (op_case.fill[i] == Fill::normal ? factor : 1);
  }
  return all;
}

}  // namespace tutti
