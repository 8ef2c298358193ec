// Attention and its gradient, head by head: keys and values of a head lie in panels, queries come
// in blocks of a few rows whose scores stay in cache. Sequences are f32 or bf16, channels last. A
// thread's memory grows with the number of keys, never with its square.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/sequence/attention_problem.h"
#include "tutti/backend/cpu/sequence/channels_last.h"

namespace tutti::backend {
namespace {

using attention::for_each_vector, attention::HeadRows, attention::Keep, attention::kQueryRows,
    attention::Mask, attention::padded;
using matrix::kColumns;
using simd::Floats;

constexpr float kUnseen = -std::numeric_limits<float>::infinity();

template <class T>
class AttentionKernel final : public Kernel {
  using Element = attention::ElementOf<T>;

 public:
  AttentionKernel(const KernelRequest& r, const ops::Attention& op)
      : p_(op.attention(), r.in), keep_(p_.a, p_.s.keys), c_(static_cast<size_t>(kQueryRows)) {}

  size_t workspace_bytes() const override {
    return static_cast<size_t>(2 * p_.row() * p_.width() + p_.row() +
                               kQueryRows * (p_.row() + 2 * p_.width())) *
           sizeof(float);
  }

  void run(const KernelArgs& args) override {
    attention::Pool pool(args.workspace);
    Memory m{.keys = pool.take<Element>(p_.row() * p_.width()),
             .values = pool.take<Element>(p_.row() * p_.width()),
             .mask = pool.take(p_.row()),
             .scores = pool.take(kQueryRows * p_.row()),
             .queries = pool.take<Element>(kQueryRows * p_.width()),
             .results = pool.take(kQueryRows * p_.width())};
    const ops::AttentionShape& s = p_.s;
    const auto [first, last] = share(p_.samples * p_.a.key_heads, args.thread, args.threads);
    for (int64_t i = first; i < last; ++i) {
      const int64_t n = i / p_.a.key_heads, g = i % p_.a.key_heads;
      const Mask mask = p_.mask(args, 0, n, m.mask);
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
    Element *keys, *values;
    float *mask, *scores;
    Element* queries;
    float* results;
  };

  static int64_t elements(int64_t terms) { return attention::elements_of<Element>(terms); }
  HeadRows<const T> rows(const KernelArgs& args, const ops::AttentionShape::Part& part,
                         int64_t length, int64_t n, int64_t h) const {
    return p_.rows(static_cast<const T*>(args.in[part.input]), part, length, n, h);
  }

  void attend(const KernelArgs& args, int64_t n, int64_t h, int64_t first, const Mask& mask,
              const Memory& m) {
    const ops::AttentionShape& s = p_.s;
    const int64_t count = std::min(kQueryRows, s.queries - first),
                  keys = p_.seen_before(first + count);  // keys that any of the queries sees
    rows(args, s.q, s.queries, n, h).from(first).read(count, m.queries, p_.width());
    attention::multiply_rows<Element>({.a = m.queries,
                                       .a_row = p_.width(),
                                       .a_step = 1,
                                       .b = m.keys,
                                       .b_panel = elements(s.width) * kColumns,
                                       .depth = elements(s.width),
                                       .c = m.scores,
                                       .c_row = p_.row()},
                                      count, keys, c_);
    float factor[kQueryRows];
    auto* const logs = static_cast<float*>(args.out[1]) + (n * s.queries + first) * p_.a.heads + h;
    for (int64_t i = 0; i < count; ++i) {
      const auto sum = softmax(m.scores + i * p_.row(), first + i, padded(keys), mask);
      const bool none = sum.sum == 0;  // no key is seen
      factor[i] = none ? 0 : 1 / sum.sum;
      logs[i * p_.a.heads] =
          none ? std::numeric_limits<float>::infinity() : sum.top + std::log(sum.sum);
    }
    attention::multiply_rows<Element>({.a = reinterpret_cast<const Element*>(m.scores),
                                       .a_row = p_.row(),
                                       .a_step = 1,
                                       .b = m.values,
                                       .b_panel = elements(s.keys) * kColumns,
                                       .depth = elements(keys),
                                       .c = m.results,
                                       .c_row = p_.width()},
                                      count, s.width, c_);
    const auto y = p_.result(static_cast<T*>(args.out[0]), n, h);
    for (int64_t i = 0; i < count; ++i) y.write(first + i, m.results + i * p_.width(), factor[i]);
  }

  struct Sum {
    float top, sum;
  };
  /// Replaces a query's scores up to `end`, a whole vector, by terms: exp(scale s - top) for keys
  /// that are seen and kept, 0 for others. The returned sum is over all keys that are seen.
  Sum softmax(float* s, int64_t query, int64_t end, const Mask& mask) const {
    mask.hide(query, s, p_.seen_before(query + 1), end);
    const auto score = [s, scale = p_.s.scale](int64_t j) {
      return scale * simd::load(s + j, simd::AllLanes{});
    };
    Floats top = simd::splat(kUnseen);
    for_each_vector(end, [&](int64_t j) { top = simd::greater_of(score(j), top); });
    float lanes[simd::kLanes];
    simd::store(lanes, top, simd::AllLanes{});
    const float greatest = *std::max_element(lanes, lanes + simd::kLanes);
    Floats sum{};
    const Floats shift = simd::splat(greatest > kUnseen ? greatest : 0);
    for_each_vector(end, [&](int64_t j) {
      const Floats p = attention::exp_of_seen(score(j), shift);
      sum += p;
      if (keep_.all())
        attention::put_terms_of_row<T>(s, j, p);
      else
        simd::store(s + j, p, simd::AllLanes{});
    });
    if (!keep_.all())
      keep_.for_each(query, end, [&](int64_t j, Floats keep) {
        attention::put_terms_of_row<T>(s, j, keep * simd::load(s + j, simd::AllLanes{}));
      });
    return {greatest, simd::sum(sum)};
  }

  attention::Problem p_;
  Keep keep_;
  std::vector<float*> c_;
};

std::unique_ptr<Kernel> make_attention(const KernelRequest& r, const ops::Attention& op) {
  if (r.out[0].dtype == DType::f32) return std::make_unique<AttentionKernel<float>>(r, op);
  return std::make_unique<AttentionKernel<bf16>>(r, op);
}

template <class O>
auto attention_with(std::unique_ptr<Kernel> (*make)(const KernelRequest&, const O&)) {
  const auto kernel = [make](const KernelRequest& r, const O& op) {
    KernelCandidate c = candidate_for(r, "cpu:attention");
    for (const auto* side : {&r.in, &r.out})
      for (const TensorDesc& d : *side)
        if (d.shape.rank() == 3 && d.layout != Layout::channels_last(3))
          c.refusal = "only channels last";
        else if (d.shape.rank() == 2 && !d.layout.is_plain())
          c.refusal = "only plain masks";
    c.make = [r, op, make] { return make(r, op); };
    if (const DType type = r.out[0].dtype; type != DType::f32 && type != DType::bf16)
      c.refusal = fmt::format("no attention of {}", name_of(type));
    return c;
  };
  return channels_last(kernel,
                       [](const O& op) { return SequenceForm{.shared = op.attention().whole}; });
}

}  // namespace

void register_attention_kernels(KernelTable& table) {
  table.add<ops::Attention>(attention_with(make_attention));
  table.add<ops::AttentionGrad>(attention_with(attention::make_grad));
}

}  // namespace tutti::backend
