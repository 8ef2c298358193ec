#include "tutti/backend/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tutti/backend/cpu/attention_rows.h"
#include "tutti/backend/cpu/sample.h"
#include "tutti/ops/attention.h"

namespace tutti {
namespace {

using attention::for_each_vector, attention::HeadRows, attention::Keep, attention::kQueryRows,
    attention::Mask, attention::padded;
using matrix::kColumns, matrix::multiply_block;
using simd::Floats;
using Tile = matrix::Tile<float>;

constexpr float kUnseen = -std::numeric_limits<float>::infinity();

/// What forward and backward share of one problem.
struct AttentionProblem {
  AttentionAttributes a;
  AttentionShape s;
  int64_t samples = 0;
  std::vector<int64_t> channels;  ///< of each sequence

  AttentionProblem(const AttentionAttributes& attributes, std::span<const TensorDesc> sequences)
      : a(attributes) {
    std::vector<Shape> shapes;
    for (size_t i = 0; i < a.sequences(); ++i) {
      shapes.push_back(sequences[i].shape);
      channels.push_back(sequences[i].shape[1]);
    }
    samples = shapes[0][0];
    s = AttentionShape::of(a, shapes);
  }
  int64_t group() const { return a.heads / a.key_heads; }
  /// Keys that the queries before `last` see, as far as `causal` says.
  int64_t seen_before(int64_t last) const { return a.causal ? last + s.keys - s.queries : s.keys; }
  int64_t row() const { return padded(s.keys); }     ///< floats of a row of scores
  int64_t width() const { return padded(s.width); }  ///< and of a vector of a head

  /// Channels of a head of one part, in a sample of the sequences `in`.
  template <class T>
  HeadRows<T> rows(T* sequence, const AttentionShape::Part& part, int64_t length, int64_t n,
                   int64_t h) const {
    const int64_t all = channels[part.input];
    return {sequence + n * length * all + part.first + h * s.width, all, s.width};
  }
};

/// Parts of a workspace, in floats.
class FloatPool {
 public:
  explicit FloatPool(void* memory) : at_(static_cast<float*>(memory)) {}
  float* take(int64_t floats) { return std::exchange(at_, at_ + padded(floats)); }

 private:
  float* at_;
};

/// Scores of a block of queries: rows of p.row() floats.
struct ScoreBlock {
  float* s;
  int64_t rows, keys, stride;  ///< `keys`: that any of its queries sees
  float* row(int64_t i) const { return s + i * stride; }
};

/// c[i] = or += rows of a times panels of b.
struct Product {
  const float* a;
  int64_t a_row, a_step;
  const float* b;
  int64_t b_panel, depth;
  float* c;
  int64_t c_row;
  bool add = false;
};

void multiply_rows(const Product& p, int64_t rows, int64_t columns, std::vector<float*>& c) {
  for (int64_t i = 0; i < rows; ++i) c[static_cast<size_t>(i)] = p.c + i * p.c_row;
  multiply_block<float>({.a = p.a,
                         .a_row = p.a_row,
                         .a_step = p.a_step,
                         .b = p.b,
                         .b_panel = p.b_panel,
                         .depth = p.depth,
                         .c = c.data(),
                         .c_panel = kColumns,
                         .add = p.add},
                        rows, columns);
}

template <class T>
class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const KernelRequest& r, const Attention& op)
      : p_(op.attention(), r.in), keep_(p_.a, p_.s.keys), c_(static_cast<size_t>(kQueryRows)) {}

  size_t workspace_bytes() const override {
    return static_cast<size_t>(2 * p_.row() * p_.width() + p_.row() +
                               kQueryRows * (p_.row() + 2 * p_.width())) *
           sizeof(float);
  }

  void run(const KernelArgs& args) override {
    FloatPool pool(args.workspace);
    Memory m{.keys = pool.take(p_.row() * p_.width()),
             .values = pool.take(p_.row() * p_.width()),
             .mask = pool.take(p_.row()),
             .scores = pool.take(kQueryRows * p_.row()),
             .queries = pool.take(kQueryRows * p_.width()),
             .results = pool.take(kQueryRows * p_.width())};
    const AttentionShape& s = p_.s;
    const auto [first, last] = share(p_.samples * p_.a.key_heads, args.part, args.parts);
    for (int64_t i = first; i < last; ++i) {
      const int64_t n = i / p_.a.key_heads, g = i % p_.a.key_heads;
      Mask mask(p_.a.mask, m.mask);
      if (p_.a.mask != AttentionMask::none)
        mask.read(static_cast<const int32_t*>(args.in[p_.a.sequences()]) + n * s.keys, s.keys);
      attention::to_columns(rows(args, s.k, s.keys, n, g), s.keys, m.keys);
      attention::to_panels(rows(args, s.v, s.keys, n, g), s.keys, m.values);
      for (int64_t h = g * p_.group(); h < (g + 1) * p_.group(); ++h) {
        keep_.begin(args, n, h);
        for (int64_t query = 0; query < s.queries; query += kQueryRows)
          attend(args, n, h, query, mask, m);
      }
    }
  }

 private:
  struct Memory {
    float *keys, *values, *mask, *scores, *queries, *results;
  };

  HeadRows<const T> rows(const KernelArgs& args, const AttentionShape::Part& part, int64_t length,
                         int64_t n, int64_t h) const {
    return p_.rows(static_cast<const T*>(args.in[part.input]), part, length, n, h);
  }

  void attend(const KernelArgs& args, int64_t n, int64_t h, int64_t first, const Mask& mask,
              const Memory& m) {
    const AttentionShape& s = p_.s;
    const int64_t count = std::min(kQueryRows, s.queries - first);
    const ScoreBlock block{m.scores, count, p_.seen_before(first + count), p_.row()};
    rows(args, s.q, s.queries, n, h).read(first, count, s.scale, m.queries, p_.width());
    multiply_rows({.a = m.queries,
                   .a_row = p_.width(),
                   .a_step = 1,
                   .b = m.keys,
                   .b_panel = s.width * kColumns,
                   .depth = s.width,
                   .c = block.s,
                   .c_row = block.stride},
                  count, block.keys, c_);
    float factor[kQueryRows];
    auto* const logs = static_cast<float*>(args.out[1]) + (n * s.queries + first) * p_.a.heads + h;
    for (int64_t i = 0; i < count; ++i) {
      const auto sum =
          softmax(block.row(i), p_.seen_before(first + i + 1), padded(block.keys), mask, first + i);
      const bool none = sum.sum == 0;  // is seen
      factor[i] = none ? 0 : 1 / sum.sum;
      logs[i * p_.a.heads] =
          none ? std::numeric_limits<float>::infinity() : sum.top + std::log(sum.sum);
      if (keep_.all()) continue;
      keep_.for_each(first + i, padded(block.keys), [p = block.row(i)](int64_t j, Floats keep) {
        simd::store(p + j, keep * simd::load(p + j, simd::AllLanes{}), simd::AllLanes{});
      });
    }
    multiply_rows({.a = block.s,
                   .a_row = block.stride,
                   .a_step = 1,
                   .b = m.values,
                   .b_panel = s.keys * kColumns,
                   .depth = block.keys,
                   .c = m.results,
                   .c_row = p_.width()},
                  count, s.width, c_);
    HeadRows<T> y{static_cast<T*>(args.out[0]) + n * s.queries * p_.a.heads * s.width + h * s.width,
                  p_.a.heads * s.width, s.width};
    for (int64_t i = 0; i < count; ++i) y.write(first + i, m.results + i * p_.width(), factor[i]);
  }

  struct Sum {
    float top, sum;
  };
  /// exp(s - top) of what is seen, 0 of the rest.
  static Sum softmax(float* s, int64_t seen, int64_t end, const Mask& mask, int64_t query) {
    mask.hide(query, s, seen, end);
    Floats top = simd::splat(kUnseen);
    for_each_vector(end, [&](int64_t j) {
      const Floats v = simd::load(s + j, simd::AllLanes{});
      top = simd::where_less(top, v, v, top);
    });
    float lanes[simd::kLanes];
    simd::store(lanes, top, simd::AllLanes{});
    const float greatest = *std::max_element(lanes, lanes + simd::kLanes);
    Floats sum{};
    const Floats shift = simd::splat(greatest > kUnseen ? greatest : 0);
    for_each_vector(end, [&](int64_t j) {
      const Floats p = attention::exp_of_seen(simd::load(s + j, simd::AllLanes{}), shift);
      sum += p;
      simd::store(s + j, p, simd::AllLanes{});
    });
    return {greatest, simd::sum(sum)};
  }

  AttentionProblem p_;
  Keep keep_;
  std::vector<float*> c_;
};

template <class T>
class AttentionGradKernel final : public Kernel {
 public:
  AttentionGradKernel(const KernelRequest& r, const AttentionGrad& op)
      : p_(op.attention(), std::span(r.in).subspan(3)), keep_(p_.a, p_.s.keys),
        c_(static_cast<size_t>(std::max(kQueryRows, p_.s.keys))) {}

  size_t workspace_bytes() const override {
    return static_cast<size_t>(5 * p_.row() * p_.width() + p_.row() +
                               kQueryRows * (2 * p_.row() + 5 * p_.width())) *
           sizeof(float);
  }

  void run(const KernelArgs& args) override {
    FloatPool pool(args.workspace);
    const int64_t all = p_.row() * p_.width(), block = kQueryRows * p_.width();
    Memory m{.keys = pool.take(all),
             .key_panels = pool.take(all),
             .values = pool.take(all),
             .dk = pool.take(all),
             .dv = pool.take(all),
             .mask = pool.take(p_.row()),
             .p = pool.take(kQueryRows * p_.row()),
             .ds = pool.take(kQueryRows * p_.row()),
             .q = pool.take(block),
             .dy = pool.take(block),
             .q_panels = pool.take(block),
             .dy_panels = pool.take(block),
             .dq = pool.take(block)};
    const AttentionShape& s = p_.s;
    const auto [first, last] = share(p_.samples * p_.a.key_heads, args.part, args.parts);
    for (int64_t i = first; i < last; ++i) {
      const int64_t n = i / p_.a.key_heads, g = i % p_.a.key_heads;
      Mask mask(p_.a.mask, m.mask);
      if (p_.a.mask != AttentionMask::none)
        mask.read(static_cast<const int32_t*>(args.in[3 + p_.a.sequences()]) + n * s.keys, s.keys);
      const auto keys = rows(args, s.k, s.keys, n, g), values = rows(args, s.v, s.keys, n, g);
      attention::to_columns(keys, s.keys, m.keys);
      attention::to_panels(keys, s.keys, m.key_panels);
      attention::to_columns(values, s.keys, m.values);
      std::fill_n(m.dk, s.keys * p_.width(), 0.f);
      std::fill_n(m.dv, s.keys * p_.width(), 0.f);
      for (int64_t h = g * p_.group(); h < (g + 1) * p_.group(); ++h) {
        keep_.begin(args, n, h);
        for (int64_t query = 0; query < s.queries; query += kQueryRows)
          attend_backward(args, n, h, query, mask, m);
      }
      const auto dk = gradients(args, s.k, s.keys, n, g), dv = gradients(args, s.v, s.keys, n, g);
      for (int64_t j = 0; j < s.keys; ++j) {
        dk.write(j, m.dk + j * p_.width(), 1);
        dv.write(j, m.dv + j * p_.width(), 1);
      }
    }
  }

 private:
  struct Memory {
    float *keys, *key_panels, *values, *dk, *dv, *mask, *p, *ds, *q, *dy, *q_panels, *dy_panels,
        *dq;
  };

  HeadRows<const T> rows(const KernelArgs& args, const AttentionShape::Part& part, int64_t length,
                         int64_t n, int64_t h) const {
    return p_.rows(static_cast<const T*>(args.in[3 + part.input]), part, length, n, h);
  }
  HeadRows<T> gradients(const KernelArgs& args, const AttentionShape::Part& part, int64_t length,
                        int64_t n, int64_t h) const {
    return p_.rows(static_cast<T*>(args.out[part.input]), part, length, n, h);
  }

  void attend_backward(const KernelArgs& args, int64_t n, int64_t h, int64_t first,
                       const Mask& mask, const Memory& m) {
    const AttentionShape& s = p_.s;
    const int64_t count = std::min(kQueryRows, s.queries - first), width = p_.width(),
                  stride = p_.row(), keys = p_.seen_before(first + count);
    const int64_t channels = p_.a.heads * s.width, at = n * s.queries * channels + h * s.width;
    const HeadRows<const T> dy{static_cast<const T*>(args.in[0]) + at, channels, s.width},
        y{static_cast<const T*>(args.in[1]) + at, channels, s.width};
    const auto* const logs =
        static_cast<const float*>(args.in[2]) + (n * s.queries + first) * p_.a.heads + h;
    rows(args, s.q, s.queries, n, h).read(first, count, s.scale, m.q, width);
    y.read(first, count, 1, m.dq, width);  // in the place of dq, which is made at the end
    dy.read(first, count, 1, m.dy, width);
    const auto scores = [&](const float* a, const float* b, float* c) {
      multiply_rows({.a = a,
                     .a_row = width,
                     .a_step = 1,
                     .b = b,
                     .b_panel = s.width * kColumns,
                     .depth = s.width,
                     .c = c,
                     .c_row = stride},
                    count, keys, c_);
    };
    scores(m.q, m.keys, m.p);
    scores(m.dy, m.values, m.ds);
    for (int64_t i = 0; i < count; ++i) {
      const float all = attention::dot(m.dy + i * width, m.dq + i * width, width);
      float *const p = m.p + i * stride, *const ds = m.ds + i * stride;
      mask.hide(first + i, p, p_.seen_before(first + i + 1), padded(keys));
      const Floats shift = simd::splat(logs[i * p_.a.heads]);
      if (!keep_.all()) {  // dv takes what was kept of p
        keep_.for_each(first + i, padded(keys), [&](int64_t j, Floats keep) {
          const Floats v = attention::exp_of_seen(simd::load(p + j, simd::AllLanes{}), shift);
          simd::store(p + j, keep * v, simd::AllLanes{});
          simd::store(ds + j, v * (keep * simd::load(ds + j, simd::AllLanes{}) - all),
                      simd::AllLanes{});
        });
        continue;
      }
      for_each_vector(padded(keys), [&](int64_t j) {
        const Floats v = attention::exp_of_seen(simd::load(p + j, simd::AllLanes{}), shift);
        simd::store(p + j, v, simd::AllLanes{});
        simd::store(ds + j, v * (simd::load(ds + j, simd::AllLanes{}) - all), simd::AllLanes{});
      });
    }
    multiply_rows({.a = m.ds,
                   .a_row = stride,
                   .a_step = 1,
                   .b = m.key_panels,
                   .b_panel = s.keys * kColumns,
                   .depth = keys,
                   .c = m.dq,
                   .c_row = width},
                  count, s.width, c_);
    const auto dq = gradients(args, s.q, s.queries, n, h);
    for (int64_t i = 0; i < count; ++i) dq.write(first + i, m.dq + i * width, s.scale);
    attention::to_panels(HeadRows<const float>{m.q, width, s.width}, count, m.q_panels);
    attention::to_panels(HeadRows<const float>{m.dy, width, s.width}, count, m.dy_panels);
    const auto add = [&](const float* a, const float* b, float* c) {
      multiply_rows({.a = a,
                     .a_row = 1,
                     .a_step = stride,
                     .b = b,
                     .b_panel = count * kColumns,
                     .depth = count,
                     .c = c,
                     .c_row = width,
                     .add = true},
                    keys, s.width, c_);
    };
    add(m.ds, m.q_panels, m.dk);
    add(m.p, m.dy_panels, m.dv);
  }

  AttentionProblem p_;
  Keep keep_;
  std::vector<float*> c_;
};

template <template <class> class K, class O>
void add_attention(const KernelRequest& r, std::vector<KernelCandidate>& candidates, const O& op) {
  KernelCandidate c = candidate_for(r, "cpu:attention");
  for (const auto* side : {&r.in, &r.out})
    for (const TensorDesc& d : *side)
      if (d.shape.rank() == 3 && d.layout != Layout::channels_last(3))
        c.refusal = "only channels last";
      else if (d.shape.rank() == 2 && !d.layout.is_plain())
        c.refusal = "only plain masks";
  if (!with_float_type(r.out[0].dtype, [&](auto type) {
        c.make = [r, op] { return std::make_unique<K<decltype(type)>>(r, op); };
      }))
    c.refusal = fmt::format("no attention of {}", name_of(r.out[0].dtype));
  candidates.push_back(std::move(c));
}

}  // namespace

bool append_attention_candidates(const KernelRequest& r, std::vector<KernelCandidate>& candidates) {
  if (const auto* const op = dynamic_cast<const Attention*>(r.op))
    add_attention<AttentionKernel>(r, candidates, *op);
  else if (const auto* const grad = dynamic_cast<const AttentionGrad*>(r.op))
    add_attention<AttentionGradKernel>(r, candidates, *grad);
  else
    return false;
  return true;
}

}  // namespace tutti
