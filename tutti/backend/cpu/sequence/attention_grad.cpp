#include <algorithm>
#include <memory>
#include <vector>

#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/sequence/attention_problem.h"

namespace tutti::backend {
namespace {

using attention::for_each_vector, attention::HeadRows, attention::Keep, attention::kQueryRows,
    attention::Mask, attention::padded;
using matrix::kColumns, matrix::TermPair;
using simd::Floats;

template <class T>
class AttentionGradKernel final : public Kernel {
  using Element = attention::ElementOf<T>;
  static constexpr bool kPairs = attention::kTerms<Element> == 2;

 public:
  AttentionGradKernel(const KernelRequest& r, const ops::AttentionGrad& op)
      : p_(op.attention(), std::span(r.in).subspan(3)), keep_(p_.a, p_.s.keys),
        c_(static_cast<size_t>(std::max(kQueryRows, p_.s.keys))) {}

  size_t workspace_bytes() const override {
    return static_cast<size_t>(5 * p_.row() * p_.width() + p_.row() +
                               kQueryRows * (2 * p_.row() + 5 * p_.width()) + pair_rows()) *
           sizeof(float);
  }

  void run(const KernelArgs& args) override {
    attention::Pool pool(args.workspace);
    const int64_t all = p_.row() * p_.width(), block = kQueryRows * p_.width();
    Memory m{.keys = pool.take<Element>(all),
             .key_panels = pool.take<Element>(all),
             .values = pool.take<Element>(all),
             .dk = pool.take(all),
             .dv = pool.take(all),
             .mask = pool.take(p_.row()),
             .p = pool.take(kQueryRows * p_.row()),
             .ds = pool.take(kQueryRows * p_.row()),
             .q = pool.take<Element>(block),
             .dy = pool.take<Element>(block),
             .q_panels = pool.take<Element>(block),
             .dy_panels = pool.take<Element>(block),
             .dq = pool.take(block),
             .ds_rows = pool.take<Element>(pair_rows())};
    const ops::AttentionShape& s = p_.s;
    const auto [first, last] = share(p_.samples * p_.a.key_heads, args.thread, args.threads);
    for (int64_t i = first; i < last; ++i) {
      const int64_t n = i / p_.a.key_heads, g = i % p_.a.key_heads;
      const Mask mask = p_.mask(args, 3, n, m.mask);
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
        dk.write(j, m.dk + j * p_.width(), s.scale);
        dv.write(j, m.dv + j * p_.width(), 1);
      }
    }
  }

 private:
  struct Memory {
    Element *keys, *key_panels, *values;
    float *dk, *dv, *mask, *p, *ds;
    Element *q, *dy, *q_panels, *dy_panels;
    float* dq;
    Element* ds_rows;
  };
  /// Some queries of a head, and the number of keys that any of them sees.
  struct Block {
    int64_t first, count, keys;
  };

  static int64_t elements(int64_t terms) { return attention::elements_of<Element>(terms); }
  /// With pairs the rows of ds have separate memory.
  int64_t pair_rows() const { return kPairs ? kQueryRows * p_.row() / 2 : 0; }

  HeadRows<const T> rows(const KernelArgs& args, const ops::AttentionShape::Part& part,
                         int64_t length, int64_t n, int64_t h) const {
    return p_.rows(static_cast<const T*>(args.in[3 + part.input]), part, length, n, h);
  }
  HeadRows<T> gradients(const KernelArgs& args, const ops::AttentionShape::Part& part,
                        int64_t length, int64_t n, int64_t h) const {
    return p_.rows(static_cast<T*>(args.out[part.input]), part, length, n, h);
  }

  void attend_backward(const KernelArgs& args, int64_t n, int64_t h, int64_t first,
                       const Mask& mask, const Memory& m) {
    const ops::AttentionShape& s = p_.s;
    const int64_t count = std::min(kQueryRows, s.queries - first), width = p_.width();
    const Block block{first, count, p_.seen_before(first + count)};
    const auto q = rows(args, s.q, s.queries, n, h).from(first),
               dy = p_.result(static_cast<const T*>(args.in[0]), n, h).from(first),
               y = p_.result(static_cast<const T*>(args.in[1]), n, h).from(first);
    q.read(count, m.q, width);
    dy.read(count, m.dy, width);
    const auto scores = [&](const Element* a, const Element* b, float* c) {
      attention::multiply_rows<Element>({.a = a,
                                         .a_row = width,
                                         .a_step = 1,
                                         .b = b,
                                         .b_panel = elements(s.width) * kColumns,
                                         .depth = elements(s.width),
                                         .c = c,
                                         .c_row = p_.row()},
                                        count, block.keys, c_);
    };
    scores(m.q, m.keys, m.p);
    scores(m.dy, m.values, m.ds);
    const auto* const logs =
        static_cast<const float*>(args.in[2]) + (n * s.queries + first) * p_.a.heads + h;
    for (int64_t i = 0; i < count; ++i)
      go_back(block, i,
              {.log = logs[i * p_.a.heads], .loss = attention::dot(dy.row(i), y.row(i), s.width)},
              mask, m);
    const Operands of = operands(block, m);
    attention::multiply_rows<Element>({.a = of.ds_rows,
                                       .a_row = of.row,
                                       .a_step = 1,
                                       .b = m.key_panels,
                                       .b_panel = elements(s.keys) * kColumns,
                                       .depth = elements(block.keys),
                                       .c = m.dq,
                                       .c_row = width},
                                      count, s.width, c_);
    const auto dq = gradients(args, s.q, s.queries, n, h);
    for (int64_t i = 0; i < count; ++i) dq.write(first + i, m.dq + i * width, s.scale);
    attention::to_panels(q, count, m.q_panels);
    attention::to_panels(dy, count, m.dy_panels);
    const auto add = [&](const Element* a, const Element* b, float* c) {
      attention::multiply_rows<Element>({.a = a,
                                         .a_row = 1,
                                         .a_step = of.step,
                                         .b = b,
                                         .b_panel = elements(count) * kColumns,
                                         .depth = elements(count),
                                         .c = c,
                                         .c_row = width,
                                         .add = true},
                                        block.keys, s.width, c_);
    };
    add(of.ds, m.q_panels, m.dk);
    add(of.p, m.dy_panels, m.dv);
  }

  /// The values that backward needs of a query.
  struct Query {
    float log;   ///< logarithm of the sum of exp(scale s)
    float loss;  ///< subtracted from every score's gradient: the sum over keys of keep p dp, or of
                 ///< dy y
  };
  /// Computes for query i of a block p = keep exp(scale s - log), which dv uses, and ds = exp(scale
  /// s - log) (keep dp - loss).
  void go_back(const Block& block, int64_t i, const Query& known, const Mask& mask,
               const Memory& m) const {
    float *const p = m.p + i * p_.row(), *const ds = m.ds + i * p_.row();
    const int64_t query = block.first + i, end = padded(block.keys);
    mask.hide(query, p, p_.seen_before(query + 1), end);
    std::fill(ds + block.keys, ds + end, 0.f);  // where no product was written
    const Floats shift = simd::splat(known.log);
    const auto probability = [&](int64_t j) {
      return attention::exp_of_seen(p_.s.scale * simd::load(p + j, simd::AllLanes{}), shift);
    };
    const auto put = [](float* to, Floats v) {  // pair() rounds by itself
      simd::store(to, kPairs ? v : attention::term_of<T>(v), simd::AllLanes{});
    };
    if (keep_.all())
      for_each_vector(end, [&](int64_t j) {
        const Floats v = probability(j);
        put(p + j, v);
        put(ds + j, v * (simd::load(ds + j, simd::AllLanes{}) - known.loss));
      });
    else
      keep_.for_each(query, end, [&](int64_t j, Floats keep) {
        const Floats v = probability(j);
        put(p + j, keep * v);
        put(ds + j, v * (keep * simd::load(ds + j, simd::AllLanes{}) - known.loss));
      });
  }

  /// p and ds of a block as elements: `ds_rows` has a row for each query, for sums over keys; the
  /// others have a row for each element of queries, `step` apart, for sums over queries.
  struct Operands {
    const Element* ds_rows;
    int64_t row;
    const Element *p, *ds;
    int64_t step;
  };
  Operands operands(const Block& block, const Memory& m) const {
    const int64_t row = p_.row();
    if constexpr (!kPairs) {
      return {m.ds, row, m.p, m.ds, row};
    } else {
      for (int64_t i = 0; i < block.count; i += 2) pair(i, block, m);
      return {m.ds_rows, row / 2, reinterpret_cast<const TermPair*>(m.p),
              reinterpret_cast<const TermPair*>(m.ds), 2 * row};
    }
  }
  static_assert(kQueryRows % 2 == 0);  // so that a row follows the last query
  /// Joins queries i and i + 1: pairs of both replace the first, and rows of ds are made.
  void pair(int64_t i, const Block& block, const Memory& m) const {
    const int64_t row = p_.row(), end = padded(block.keys);
    const bool both = i + 1 < block.count;
    float *const p = m.p + i * row, *const ds = m.ds + i * row;
    auto* const to = reinterpret_cast<bf16*>(m.ds_rows) + i * row;
    const auto second = [&](const float* first, int64_t j) {
      return both ? simd::load(first + row + j, simd::AllLanes{}) : Floats{};
    };
    for_each_vector(end, [&](int64_t j) {
      const Floats p0 = simd::load(p + j, simd::AllLanes{}), p1 = second(p, j),
                   ds0 = simd::load(ds + j, simd::AllLanes{}), ds1 = second(ds, j);
      simd::store_as(p + j, matrix::interleaved(p0, p1));
      simd::store_as(ds + j, matrix::interleaved(ds0, ds1));
      simd::store(to + j, ds0, simd::AllLanes{});
      simd::store(to + row + j, ds1, simd::AllLanes{});
    });
  }

  attention::Problem p_;
  Keep keep_;
  std::vector<float*> c_;
};

}  // namespace

std::unique_ptr<Kernel> attention::make_grad(const KernelRequest& r, const ops::AttentionGrad& op) {
  if (r.out[0].dtype == DType::f32) return std::make_unique<AttentionGradKernel<float>>(r, op);
  return std::make_unique<AttentionGradKernel<bf16>>(r, op);
}

}  // namespace tutti::backend
