#include "tutti/ops/sequence/attention.h"

#include <cmath>
#include <limits>

#include "tutti/backend/reference/rules.h"

namespace tutti::backend {
namespace {

/// The sequences of one call, and their gradients if they are made.
class Heads {
 public:
  /// `first`: the input that holds the first sequence; all are of this type.
  Heads(const ops::AttentionAttributes& a, const RuleCall& call, size_t first, DType type)
      : a_(a), in_(call.in), out_(call.out), first_(first), type_(type),
        shape_(shape_of(a, call, first)) {}

  const ops::AttentionShape& shape() const { return shape_; }
  int64_t batch() const { return in_[first_].shape()[0]; }
  int64_t key_head(int64_t h) const { return h / (a_.heads / a_.key_heads); }

  /// Element d of head h at a position of the part.
  double read(const ops::AttentionShape::Part& part, int64_t n, int64_t h, int64_t d,
              int64_t t) const {
    const PlainTensor& x = in_[first_ + part.input];
    return x[place(x, part, n, h, d, t)];
  }
  void add(const ops::AttentionShape::Part& part, int64_t n, int64_t h, int64_t d, int64_t t,
           double value) {
    PlainTensor& x = out_[part.input];
    x[place(x, part, n, h, d, t)] += value;
  }

  bool sees(int64_t n, int64_t i, int64_t j) const {
    if (a_.causal && j > i + shape_.keys - shape_.queries) return false;
    if (a_.mask == ops::AttentionMask::none) return true;
    const PlainTensor& mask = in_[first_ + a_.sequences()];
    const double key = mask[n * shape_.keys + j];
    return key >= 0 && (a_.mask == ops::AttentionMask::keys || key == mask[n * shape_.keys + i]);
  }
  /// Factor of p[i, j] after dropout.
  double keep(const RuleCall& call, int64_t n, int64_t h, int64_t i, int64_t j) const {
    if (a_.dropout == 0) return 1;
    const ops::SampleKey key = ops::keep_key(
        {call.step.seed, call.step.step, call.step.replica, call.first_sample + n, a_.salt},
        a_.first_head + h);
    const auto word = ops::sample_bits(
        Purpose::dropout, key,
        ops::keep_block(i, j / ops::kKeepKeys, shape_.keys) + static_cast<uint32_t>(j % 16));
    const auto part = static_cast<size_t>(j % ops::kKeepKeys / 16);
    const uint32_t bits = word[part / 2] >> (part % 2 * 16) & 0xFFFF;
    return bits < ops::keep_threshold(a_.dropout)
               ? 0
               : static_cast<double>(ops::keep_factor(a_.dropout));
  }
  /// Rounds a factor of a product that is not a sequence's element.
  double term(double value) const {
    return type_ == DType::bf16
               ? static_cast<double>(static_cast<float>(bf16(static_cast<float>(value))))
               : value;
  }
  double score(int64_t n, int64_t h, int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t d = 0; d < shape_.width; ++d)
      sum += read(shape_.q, n, h, d, i) * read(shape_.k, n, key_head(h), d, j);
    return static_cast<double>(shape_.scale) * sum;
  }

 private:
  static ops::AttentionShape shape_of(const ops::AttentionAttributes& a, const RuleCall& call,
                                      size_t first) {
    std::vector<Shape> shapes;
    for (size_t i = 0; i < a.sequences(); ++i) shapes.push_back(call.in[first + i].shape());
    return ops::AttentionShape::of(a, shapes);
  }
  int64_t place(const PlainTensor& x, const ops::AttentionShape::Part& part, int64_t n, int64_t h,
                int64_t d, int64_t t) const {
    return (n * x.shape()[1] + part.first + h * shape_.width + d) * x.shape()[2] + t;
  }

  const ops::AttentionAttributes& a_;
  std::vector<PlainTensor>& in_;
  std::vector<PlainTensor>& out_;
  size_t first_;
  DType type_;
  ops::AttentionShape shape_;
};

void attend(const ops::AttentionAttributes& a, const RuleCall& call, DType type) {
  const Heads heads(a, call, 0, type);
  const ops::AttentionShape& s = heads.shape();
  PlainTensor &y = call.out[0], &logs = call.out[1];
  for (int64_t n = 0; n < heads.batch(); ++n)
    for (int64_t h = 0; h < a.heads; ++h)
      for (int64_t i = 0; i < s.queries; ++i) {
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t j = 0; j < s.keys; ++j)
          if (heads.sees(n, i, j)) top = std::max(top, heads.score(n, h, i, j));
        std::vector<double> p(static_cast<size_t>(s.keys));
        for (int64_t j = 0; j < s.keys; ++j)
          if (heads.sees(n, i, j))
            sum += p[static_cast<size_t>(j)] = std::exp(heads.score(n, h, i, j) - top);
        logs[(n * a.heads + h) * s.queries + i] =
            sum == 0 ? std::numeric_limits<double>::infinity() : top + std::log(sum);
        for (int64_t j = 0; j < s.keys && sum != 0; ++j)
          p[static_cast<size_t>(j)] =
              heads.term(heads.keep(call, n, h, i, j) * p[static_cast<size_t>(j)]);
        for (int64_t d = 0; d < s.width; ++d) {
          double value = 0;
          for (int64_t j = 0; j < s.keys && sum != 0; ++j)
            value += p[static_cast<size_t>(j)] / sum * heads.read(s.v, n, heads.key_head(h), d, j);
          y[(n * a.heads * s.width + h * s.width + d) * s.queries + i] = value;
        }
      }
}

void attend_backward(const ops::AttentionAttributes& a, const RuleCall& call, DType type) {
  Heads heads(a, call, 3, type);
  const ops::AttentionShape& s = heads.shape();
  const PlainTensor &dy = call.in[0], &y = call.in[1], &logs = call.in[2];
  for (PlainTensor& gradient : call.out) gradient.fill(0);
  const auto at = [&](int64_t n, int64_t h, int64_t d, int64_t i) {
    return (n * a.heads * s.width + h * s.width + d) * s.queries + i;
  };
  for (int64_t n = 0; n < heads.batch(); ++n)
    for (int64_t h = 0; h < a.heads; ++h)
      for (int64_t i = 0; i < s.queries; ++i) {
        const int64_t g = heads.key_head(h);
        double all = 0;  // sum of dy and y: subtracted from every score of the row
        for (int64_t d = 0; d < s.width; ++d) all += dy[at(n, h, d, i)] * y[at(n, h, d, i)];
        for (int64_t j = 0; j < s.keys; ++j) {
          if (!heads.sees(n, i, j)) continue;
          const double p =
              std::exp(heads.score(n, h, i, j) - logs[(n * a.heads + h) * s.queries + i]);
          double dp = 0;
          for (int64_t d = 0; d < s.width; ++d)
            dp += dy[at(n, h, d, i)] * heads.read(s.v, n, g, d, j);
          const double keep = heads.keep(call, n, h, i, j), kept = heads.term(keep * p),
                       ds = heads.term(p * (keep * dp - all)) * static_cast<double>(s.scale);
          for (int64_t d = 0; d < s.width; ++d) {
            heads.add(s.v, n, g, d, j, kept * dy[at(n, h, d, i)]);
            heads.add(s.q, n, h, d, i, ds * heads.read(s.k, n, g, d, j));
            heads.add(s.k, n, g, d, j, ds * heads.read(s.q, n, h, d, i));
          }
        }
      }
}

}  // namespace

void register_attention_rules(RuleTable& table) {
  table.add<ops::Attention>([](const ops::Attention& op, const KernelRequest& r) -> Rule {
    return {.run = [a = op.attention(), type = r.out[0].dtype](const RuleCall& c) {
      attend(a, c, type);
    }};
  });
  table.add<ops::AttentionGrad>([](const ops::AttentionGrad& op, const KernelRequest& r) -> Rule {
    return {.run = [a = op.attention(), type = r.out[0].dtype](const RuleCall& c) {
      attend_backward(a, c, type);
    }};
  });
}

}  // namespace tutti::backend
