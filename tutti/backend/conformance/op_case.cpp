#include "tutti/backend/conformance/op_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "tutti/base/error.h"
#include "tutti/base/rng.h"
#include "tutti/base/tree_sum.h"
#include "tutti/ops/activation.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/conv_transpose.h"
#include "tutti/ops/dense.h"
#include "tutti/ops/dropout.h"
#include "tutti/ops/elementwise.h"
#include "tutti/ops/losses.h"
#include "tutti/ops/norm_update.h"
#include "tutti/ops/pool.h"
#include "tutti/ops/reorder.h"
#include "tutti/ops/shape_ops.h"

namespace tutti {
namespace {

using Numbers = std::array<int64_t, 3>;

/// The words of a line.
class Line {
 public:
  explicit Line(std::string_view text) : text_(text) {
    std::vector<std::string_view> words;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(' ', at), text.size());
      if (end > at) words.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    if (words.size() < 3)
      throw ConfigError(fmt::format("op case '{}': expected OP DTYPE EXTENTS ...", text));
    op = words[0];
    dtype = dtype_named(words[1]);
    std::vector<int64_t> dims;
    if (!read_extents(words[2], &dims))
      throw ConfigError(fmt::format("op case '{}': '{}' is not like n8c16h32w32", text, words[2]));
    x = Shape(std::span<const int64_t>(dims));
    for (size_t i = 3; i < words.size(); ++i) {
      if (read_extents(words[i], nullptr)) continue;
      const size_t digits = std::min(words[i].find_first_of("0123456789"), words[i].size());
      words_[std::string(words[i].substr(0, digits))] = {std::string(words[i].substr(digits)),
                                                         false};
    }
  }

  std::string op;
  DType dtype = DType::f32;
  Shape x;

  int64_t extent(char letter, int64_t otherwise) const {
    const auto at = extents_.find(letter);
    return at == extents_.end() ? otherwise : at->second;
  }
  bool has(const char* word) {
    const auto at = words_.find(word);
    if (at != words_.end()) at->second.used = true;
    return at != words_.end();
  }
  double number(const char* word, double otherwise) {
    if (!has(word)) return otherwise;
    double value = 0;
    const std::string& t = words_.at(word).value;
    if (std::from_chars(t.data(), t.data() + t.size(), value).ec != std::errc()) fail(word);
    return value;
  }
  /// "stride2" for all, "stride2x1" for each dimension.
  Numbers numbers(const char* word, int64_t otherwise) {
    Numbers all{otherwise, otherwise, otherwise};
    if (!has(word)) return all;
    const std::string& t = words_.at(word).value;
    const char *at = t.data(), *const end = t.data() + t.size();
    for (size_t i = 0; i < 3; ++i) {
      const auto [next, error] = std::from_chars(at, end, all[i]);
      if (error != std::errc()) fail(word);
      if (next == end) {
        if (i == 0) all[1] = all[2] = all[0];
        break;
      }
      at = next + 1;
    }
    return all;
  }
  void check_all_used() const {
    for (const auto& [name, word] : words_)
      if (!word.used)
        throw ConfigError(fmt::format("op case '{}': '{}' means nothing to {}", text_, name, op));
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw ConfigError(fmt::format("op case '{}': cannot read '{}'", text_, what));
  }

 private:
  struct Word {
    std::string value;
    bool used;
  };

  DType dtype_named(std::string_view name) const {
    for (const DType type : {DType::f32, DType::bf16, DType::i32, DType::u8})
      if (name_of(type) == name) return type;
    fail(name);
  }

  /// Reads single letters with numbers, "k16r3s3"; false if the word is of another form.
  bool read_extents(std::string_view word, std::vector<int64_t>* dims) {
    std::vector<std::pair<char, int64_t>> found;
    const char *at = word.data(), *const end = word.data() + word.size();
    while (at != end) {
      const char letter = *at++;
      int64_t value = 0;
      const auto [next, error] = std::from_chars(at, end, value);
      if (!std::isalpha(static_cast<unsigned char>(letter)) || error != std::errc()) return false;
      found.emplace_back(letter, value);
      at = next;
    }
    for (const auto& [letter, value] : found) {
      extents_[letter] = value;
      if (dims) dims->push_back(value);
    }
    return true;
  }

  std::string text_;
  std::map<char, int64_t> extents_;
  std::map<std::string, Word> words_;
};

/// Collects the inputs of a case.
class Inputs {
 public:
  explicit Inputs(OpCase& made) : made_(made) {}
  Inputs& batched(const Shape& shape, DType dtype, Fill fill = Fill::normal) {
    return add({{dtype, shape, {}}, true}, fill, false);
  }
  Inputs& free(const Shape& shape) {
    return add({{DType::f32, shape, {}}, false}, Fill::normal, true);
  }
  Inputs& fixed(const Shape& shape, Fill fill = Fill::normal) {
    return add({{DType::f32, shape, {}}, false}, fill, false);
  }

 private:
  Inputs& add(const ValueType& type, Fill fill, bool is_free) {
    made_.problem.in.push_back(type);
    made_.problem.in_free.push_back(is_free);
    made_.fill.push_back(fill);
    return *this;
  }
  OpCase& made_;
};

ConvAttributes conv_attributes(Line& line, int spatial) {
  ConvAttributes a;
  a.spatial = spatial;
  a.stride = line.numbers("stride", 1);
  a.dilation = line.numbers("dilation", 1);
  a.pad_low = line.numbers("pad", 0);
  a.pad_high = line.has("high") ? line.numbers("high", 0) : a.pad_low;
  a.groups = static_cast<int64_t>(line.number("groups", 1));
  return a;
}

Shape kernel_shape(const Line& line, int64_t in_channels) {
  const int64_t k = line.extent('k', 1), r = line.extent('r', 1), s = line.extent('s', 1);
  return line.x.rank() == 5 ? Shape{k, in_channels, line.extent('t', 1), r, s}
                            : Shape{k, in_channels, r, s};
}

void conv_case(Line& line, OpCase& made) {
  const ConvAttributes a = conv_attributes(line, line.x.rank() - 2);
  const Shape w = kernel_shape(line, line.x[1] / std::max<int64_t>(a.groups, 1));
  const Shape y = conv_output_shape(a, line.x, w);
  const bool bias = line.has("bias");
  Inputs in(made);
  if (line.op == "conv") {
    made.problem.op = std::make_shared<Conv>(a, bias, line.has("relu"));
    in.batched(line.x, line.dtype).free(w);
    if (bias) in.free(Shape{w[0]});
  } else if (line.op == "conv_backward_data") {
    made.problem.op = std::make_shared<ConvBackwardData>(a, line.x);
    in.batched(y, line.dtype).free(w);
  } else if (line.op == "conv_backward_weights") {
    made.problem.op = std::make_shared<ConvBackwardWeights>(a, w);
    made.problem.out_free = {true};
    in.batched(line.x, line.dtype).batched(y, line.dtype);
  } else {  // conv_transpose: EXTENTS are those of its result
    Numbers output_pad{};
    for (int d = 0; d < a.spatial; ++d) {
      const auto i = static_cast<size_t>(d);
      output_pad[i] = line.x[d + 2] - ((y[d + 2] - 1) * a.stride[i] - a.pad_low[i] - a.pad_high[i] +
                                       a.dilation[i] * (w[d + 2] - 1) + 1);
    }
    made.problem.op = std::make_shared<ConvTranspose>(a, bias, output_pad);
    in.batched(y, line.dtype).free(w);
    if (bias) in.free(Shape{line.x[1]});
  }
}

void batch_norm_case(Line& line, OpCase& made) {
  const Shape &x = line.x, channels{line.x[1]};
  const bool relu = line.has("relu");
  Inputs in(made);
  if (line.op == "batch_norm_stats") {
    made.problem.op = std::make_shared<BatchNormStats>();
    in.batched(x, line.dtype).fixed(channels).fixed(channels, Fill::positive);
  } else if (line.op == "batch_norm_grad_reduce") {
    const bool two = line.has("two");
    made.problem.op = std::make_shared<BatchNormGradReduce>(relu, two);
    in.batched(x, line.dtype)
        .batched(x, line.dtype)
        .fixed(channels)
        .fixed(channels, Fill::positive);
    if (relu) in.batched(x, line.dtype);
    if (two) in.batched(x, line.dtype);
  } else if (line.op == "batch_norm_grad_apply") {
    made.problem.op = std::make_shared<BatchNormGradApply>();
    in.batched(x, line.dtype)
        .batched(x, line.dtype)
        .fixed(channels)
        .fixed(channels, Fill::positive)
        .free(channels)
        .fixed(channels)
        .fixed(channels);
  } else {
    const bool residual = line.has("residual");
    if (line.op == "batch_norm_apply")
      made.problem.op = std::make_shared<BatchNormApply>(relu, residual);
    else
      made.problem.op = std::make_shared<BatchNormInference>(relu, residual);
    in.batched(x, line.dtype)
        .fixed(channels)
        .fixed(channels, Fill::positive)
        .free(channels)
        .free(channels);
    if (residual) in.batched(x, line.dtype);
  }
}

void pool_case(Line& line, OpCase& made) {
  Inputs in(made);
  const Shape& x = line.x;
  if (line.op == "global_average_pool") {
    made.problem.op = std::make_shared<GlobalAveragePool>();
    in.batched(x, line.dtype);
    return;
  }
  if (line.op == "global_average_pool_grad") {
    made.problem.op = std::make_shared<GlobalAveragePoolGrad>(x);
    in.batched(Shape{x[0], x[1]}, line.dtype);
    return;
  }
  PoolAttributes a;
  a.kind = line.has("max") ? PoolKind::max : PoolKind::average;
  line.has("average");
  a.spatial = x.rank() - 2;
  a.kernel = x.rank() == 5 ? Numbers{line.extent('t', 1), line.extent('r', 1), line.extent('s', 1)}
                           : Numbers{line.extent('r', 1), line.extent('s', 1), 1};
  a.stride = line.numbers("stride", 1);
  a.pad_low = a.pad_high = line.numbers("pad", 0);
  a.count_include_pad = !line.has("exclude_pad");
  if (line.op == "pool") {
    made.problem.op = std::make_shared<Pool>(a);
    in.batched(x, line.dtype);
  } else {
    made.problem.op = std::make_shared<PoolGrad>(a, x);
    in.batched(pool_output_shape(a, x), line.dtype);
    if (a.kind == PoolKind::max) in.batched(x, line.dtype);
  }
}

void dense_case(Line& line, OpCase& made) {
  const Shape &x = line.x, y{line.x[0], line.extent('k', 1)}, w{y[1], line.x.elements_from(1)};
  Inputs in(made);
  const DType y_dtype = line.has("narrow") ? line.dtype : DType::f32;
  if (line.op == "dense") {
    const bool bias = line.has("bias");
    made.problem.op = std::make_shared<Dense>(bias, y_dtype);
    in.batched(x, line.dtype).free(w);
    if (bias) in.free(Shape{w[0]});
  } else if (line.op == "dense_backward_data") {
    made.problem.op = std::make_shared<DenseBackwardData>(x, line.dtype);
    in.batched(y, y_dtype).free(w);
  } else {
    made.problem.op = std::make_shared<DenseBackwardWeights>();
    made.problem.out_free = {true};
    in.batched(x, line.dtype).batched(y, y_dtype);
  }
}

void pointwise_case(Line& line, OpCase& made) {
  Inputs in(made);
  const bool pair = line.op == "add" || line.op == "mul" || line.op == "activation_grad";
  const bool whole = line.has("whole");  // without a batch
  for (int i = 0; i < (pair ? 2 : 1); ++i) {
    if (whole)
      in.fixed(line.x);
    else
      in.batched(line.x, line.dtype);
  }
  if (line.op == "add") made.problem.op = std::make_shared<Add>();
  if (line.op == "mul") made.problem.op = std::make_shared<Mul>();
  if (line.op == "bias_backward") made.problem.op = std::make_shared<BiasBackward>();
  if (line.op == "dropout")
    made.problem.op =
        std::make_shared<Dropout>(static_cast<float>(line.number("probability", 0.5)), 77);
  for (const DType target : {DType::f32, DType::bf16, DType::i32})
    if (line.op == "reorder" && line.has(fmt::format("to_{}", target == DType::f32    ? "f"
                                                              : target == DType::bf16 ? "bf"
                                                                                      : "i")
                                             .c_str()))
      made.problem.op = std::make_shared<Reorder>(target);
  for (const ActivationKind kind :
       {ActivationKind::relu, ActivationKind::leaky_relu, ActivationKind::sigmoid,
        ActivationKind::tanh, ActivationKind::gelu}) {
    if (!line.has(std::string(name_of(kind)).c_str())) continue;
    if (line.op == "activation") made.problem.op = std::make_shared<Activation>(kind, 0.2f);
    if (line.op == "activation_grad")
      made.problem.op = std::make_shared<ActivationGrad>(kind, 0.2f);
  }
}

void shape_case(Line& line, OpCase& made) {
  Inputs in(made);
  const Shape& x = line.x;
  if (line.op == "reshape") {
    made.problem.op = std::make_shared<Reshape>(Shape{x.elements_from(1) / x[1], x[1]});
    in.batched(x, line.dtype);
  } else if (line.op == "pad") {
    const std::vector<int64_t> low(static_cast<size_t>(x.rank() - 1),
                                   static_cast<int64_t>(line.number("low", 1)));
    made.problem.op = std::make_shared<Pad>(
        low, std::vector<int64_t>(low.size(), static_cast<int64_t>(line.number("high", 0))), 0.5f);
    in.batched(x, line.dtype);
  } else if (line.op == "concat") {
    const int axis = static_cast<int>(line.number("axis", 1));
    made.problem.op = std::make_shared<Concat>(axis);
    Shape other = x;
    other[axis] = static_cast<int64_t>(line.number("other", 1));
    in.batched(x, line.dtype).batched(other, line.dtype).batched(x, line.dtype);
  } else {
    const auto step = static_cast<int64_t>(line.number("step", 1)),
               from = static_cast<int64_t>(line.number("from", 0));
    const bool channels = line.has("channels");  // dimension 1 alone
    std::vector<SliceRange> ranges = full_ranges(x);
    for (size_t i = 0; i < (channels ? 1 : ranges.size()); ++i)
      ranges[i] = {from, x[static_cast<int>(i) + 1] - (channels ? from : 0), step};
    Shape y = x;
    for (size_t i = 0; i < ranges.size(); ++i) y[static_cast<int>(i) + 1] = ranges[i].count();
    if (line.op == "slice")
      made.problem.op = std::make_shared<Slice>(ranges);
    else
      made.problem.op = std::make_shared<SliceGrad>(ranges, x);
    in.batched(line.op == "slice" ? x : y, line.dtype);
  }
}

void loss_case(Line& line, OpCase& made) {
  Inputs in(made);
  const Shape& x = line.x;
  const auto scale = static_cast<float>(line.number("scale", 1));
  const bool grad = line.op.ends_with("_grad");
  if (line.op.starts_with("softmax")) {
    SoftmaxCrossEntropyAttributes a{
        .label_smoothing = static_cast<float>(line.number("smoothing", 0)),
        .class_weights = {},
        .scale = scale};
    if (line.has("weights"))
      for (int64_t k = 0; k < x[1]; ++k)
        a.class_weights.push_back(0.5f + 0.25f * static_cast<float>(k % 5));
    std::vector<int64_t> labels{x[0]};
    labels.insert(labels.end(), x.begin() + 2, x.end());
    made.labels = x[1];
    in.batched(x, line.dtype)
        .batched(Shape(std::span<const int64_t>(labels)), DType::i32, Fill::label);
    if (grad) in.fixed({}, Fill::positive);
    if (grad)
      made.problem.op = std::make_shared<SoftmaxCrossEntropyGrad>(a);
    else
      made.problem.op = std::make_shared<SoftmaxCrossEntropy>(a);
  } else if (line.op.starts_with("gaussian")) {
    in.batched(x, line.dtype).batched(x, line.dtype);
    if (grad)
      made.problem.op = std::make_shared<GaussianKLGrad>(scale);
    else
      made.problem.op = std::make_shared<GaussianKL>(scale);
  } else {
    PointwiseLossAttributes a{.kind = PointwiseLossKind::mse,
                              .delta = static_cast<float>(line.number("delta", 1)),
                              .pos_weight = static_cast<float>(line.number("pos_weight", 1)),
                              .scale = scale};
    for (const PointwiseLossKind kind :
         {PointwiseLossKind::mse, PointwiseLossKind::mae, PointwiseLossKind::huber,
          PointwiseLossKind::bce_with_logits})
      if (line.has(std::string(name_of(kind)).c_str())) a.kind = kind;
    in.batched(x, line.dtype)
        .batched(x, DType::f32,
                 a.kind == PointwiseLossKind::bce_with_logits ? Fill::unit : Fill::normal);
    if (grad)
      made.problem.op = std::make_shared<PointwiseLossGrad>(a);
    else
      made.problem.op = std::make_shared<PointwiseLoss>(a);
  }
}

void update_case(Line& line, OpCase& made) {
  std::shared_ptr<const Update> op;
  const double decay = line.number("decay", 0);
  const LambAttributes lamb{.weight_decay = decay};
  if (line.op == "sgd_update")
    op = std::make_shared<SgdUpdate>(
        SgdAttributes{line.number("momentum", 0), decay, line.has("nesterov")});
  else if (line.op == "lars_update")
    op = std::make_shared<LarsUpdate>(LarsAttributes{
        .momentum = line.number("momentum", 0.9), .weight_decay = decay, .trust = 0.01});
  else if (line.op == "parameter_norms")
    op = std::make_shared<ParameterNorms>();
  else if (line.op == "lamb_moments")
    op = std::make_shared<LambMoments>(lamb);
  else if (line.op == "lamb_update")
    op = std::make_shared<LambUpdate>(lamb);
  else
    op = std::make_shared<AdamUpdate>(
        AdamAttributes{.weight_decay = decay, .decoupled = line.has("decoupled")});
  made.problem.op = op;
  Inputs in(made);
  in.fixed({}, Fill::unit).fixed({}, Fill::unit);
  const auto count = static_cast<int64_t>(line.number("count", 1));
  const auto size = [&](int64_t p) {
    return line.x[0] + 7 * p;
  };  // different, so that shares of threads begin inside parameters
  int64_t blocks = 0;
  for (int64_t p = 0; p < count; ++p) blocks += sum_blocks(size(p));
  if (op->sums() == Update::Sums::reads) in.fixed(Shape{blocks, 2}, Fill::positive);
  for (int64_t p = 0; p < count; ++p)
    for (int i = 0; i < op->arity(); ++i)
      in.fixed(Shape{size(p)}, i == 3 ? Fill::positive : Fill::normal);
}

using Family = void (*)(Line&, OpCase&);

Family family_of(std::string_view op) {
  const auto is = [op](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, op) != names.end();
  };
  if (is({"conv", "conv_backward_data", "conv_backward_weights", "conv_transpose"}))
    return conv_case;
  if (op.starts_with("batch_norm_")) return batch_norm_case;
  if (is({"pool", "pool_grad", "global_average_pool", "global_average_pool_grad"}))
    return pool_case;
  if (op.starts_with("dense")) return dense_case;
  if (is({"add", "mul", "bias_backward", "dropout", "reorder", "activation", "activation_grad"}))
    return pointwise_case;
  if (is({"reshape", "pad", "concat", "slice", "slice_grad"})) return shape_case;
  if (op.starts_with("softmax_cross_entropy") || op.starts_with("pointwise_loss") ||
      op.starts_with("gaussian_kl"))
    return loss_case;
  if (is({"sgd_update", "adam_update", "parameter_norms", "lars_update", "lamb_moments",
          "lamb_update"}))
    return update_case;
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
  Line line(text);
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
