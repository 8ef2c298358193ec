#pragma once
// Common code of attention and its gradient: one problem, and products of its rows. Private to
// attention.cpp and attention_grad.cpp.

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tutti/backend/cpu/sequence/attention_rows.h"
#include "tutti/ops/sequence/attention.h"

namespace tutti::backend::attention {

/// Queries of a block: their scores of 1024 keys are 112 KiB with AVX-512. With pairs, twice as
/// many are no faster.
constexpr int64_t kQueryRows = matrix::kMostRows * (TUTTI_AVX512 ? 2 : 4);

struct Problem {
  ops::AttentionAttributes a;
  ops::AttentionShape s;
  int64_t samples = 0;
  std::vector<int64_t> channels;  ///< channels of each sequence

  Problem(const ops::AttentionAttributes& attributes, std::span<const TensorDesc> sequences)
      : a(attributes) {
    std::vector<Shape> shapes;
    for (size_t i = 0; i < a.sequences(); ++i) {
      shapes.push_back(sequences[i].shape);
      channels.push_back(sequences[i].shape[1]);
    }
    samples = shapes[0][0];
    s = ops::AttentionShape::of(a, shapes);
  }
  int64_t group() const { return a.heads / a.key_heads; }
  /// Returns the number of keys that the queries before `last` see, as far as `causal` decides.
  /// Some queries of a block do not see the last keys, nor perhaps the second key of the last pair:
  /// those have weight 0 in its products, and only a NaN among them would have an effect.
  int64_t seen_before(int64_t last) const { return a.causal ? last + s.keys - s.queries : s.keys; }
  int64_t row() const { return padded(s.keys); }     ///< floats of a row of scores
  int64_t width() const { return padded(s.width); }  ///< floats of a vector of a head

  /// Returns the channels of a head of one part, in a sample of the sequences `in`.
  template <class T>
  HeadRows<T> rows(T* sequence, const ops::AttentionShape::Part& part, int64_t length, int64_t n,
                   int64_t h) const {
    const int64_t all = channels[part.input];
    return {sequence + n * length * all + part.first + h * s.width, all, s.width};
  }
  /// Returns which keys the queries of a sample see. `first`: the input that holds the first
  /// sequence; `memory`: as Mask needs it.
  Mask mask(const KernelArgs& args, size_t first, int64_t n, float* memory) const {
    Mask mask(a.mask, memory);
    if (a.mask != ops::AttentionMask::none)
      mask.read(static_cast<const int32_t*>(args.in[first + a.sequences()]) + n * s.keys, s.keys);
    return mask;
  }
  /// Returns the rows of a result, or of its gradient.
  template <class T>
  HeadRows<T> result(T* sequence, int64_t n, int64_t h) const {
    const int64_t all = a.heads * s.width;
    return {sequence + n * s.queries * all + h * s.width, all, s.width};
  }
};

/// Divides a workspace into parts, in whole vectors of floats or elements.
class Pool {
 public:
  explicit Pool(void* memory) : at_(static_cast<float*>(memory)) {}
  template <class Element = float>
  Element* take(int64_t count) {
    return reinterpret_cast<Element*>(std::exchange(at_, at_ + padded(count)));
  }

 private:
  float* at_;
};

/// Computes c[i] = or += rows of a times panels of b.
template <class Element>
struct Product {
  const Element* a;
  int64_t a_row, a_step;
  const Element* b;
  int64_t b_panel, depth;
  float* c;
  int64_t c_row;
  bool add = false;
};

/// `c`: space for a pointer to each row.
template <class Element>
void multiply_rows(const Product<Element>& p, int64_t rows, int64_t columns,
                   std::vector<float*>& c) {
  for (int64_t i = 0; i < rows; ++i) c[static_cast<size_t>(i)] = p.c + i * p.c_row;
  matrix::multiply_block<Element>({.a = p.a,
                                   .a_row = p.a_row,
                                   .a_step = p.a_step,
                                   .b = p.b,
                                   .b_panel = p.b_panel,
                                   .depth = p.depth,
                                   .c = c.data(),
                                   .c_panel = matrix::kColumns,
                                   .add = p.add},
                                  rows, columns);
}

/// Makes the kernel of a gradient whose sequences are channels last, f32 or bf16.
std::unique_ptr<Kernel> make_grad(const KernelRequest& request, const ops::AttentionGrad& op);

}  // namespace tutti::backend::attention
