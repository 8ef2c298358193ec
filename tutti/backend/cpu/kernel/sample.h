#pragma once
// Common code of the generic kernels: where the samples of an operand lie in memory, and functions
// that choose types and make candidates.

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/backend/backend.h"

namespace tutti::backend {

/// Returns whether samples follow each other without padding, so that a tile is one run of
/// samples() * sample_size() elements.
inline bool is_dense(const TensorDesc& d) {
  if (d.shape.rank() > 0 && d.layout.order[0] != 0) return false;
  for (int b = 0; b < d.layout.num_blocks; ++b)
    if (d.layout.blocks[static_cast<size_t>(b)].dim == 0) return false;
  return d.layout.storage_elements(d.shape) == d.elements();
}

inline int64_t sample_size(const TensorDesc& d) { return d.shape.elements_from(1); }

/// The offsets of a sample's elements from its first, in row-major order.
class SampleOffsets {
 public:
  explicit SampleOffsets(const TensorDesc& d) {
    for (int k = 1; k < d.shape.rank(); ++k) terms_.push_back(d.layout.terms(d.shape, k));
    if (terms_.empty()) terms_.push_back({0});
  }

  /// Reads the offsets of elements [first, first + count).
  void read(int64_t first, int64_t count, int64_t* offsets) const {
    std::array<size_t, Shape::kMaxRank> index{};
    const size_t last = terms_.size() - 1;
    for (size_t d = terms_.size(); d-- > 0;) {
      const auto extent = static_cast<int64_t>(terms_[d].size());
      index[d] = static_cast<size_t>(first % extent);
      first /= extent;
    }
    while (count > 0) {
      int64_t row = 0;
      for (size_t d = 0; d < last; ++d) row += terms_[d][index[d]];
      for (; count > 0 && index[last] < terms_[last].size(); --count)
        *offsets++ = row + terms_[last][index[last]++];
      index[last] = 0;
      for (size_t d = last; d-- > 0 && ++index[d] == terms_[d].size();) index[d] = 0;
    }
  }

 private:
  std::vector<std::vector<int64_t>> terms_;  ///< by dimension after the batch
};

/// Calls f with a value of the C++ type; false if the kernels have none for it.
template <class F>
bool with_float_type(DType type, F f) {
  if (type == DType::f32)
    f(float{});
  else if (type == DType::bf16)
    f(bf16{});
  else
    return false;
  return true;
}

/// Gives a candidate the kernel K<C++ type>, made with `args`; refuses types that the kernels have
/// not: "no `what` of f64".
template <template <class> class K, class... Args>
void choose_kernel(KernelCandidate& c, DType type, std::string_view what, const Args&... args) {
  if (!with_float_type(type, [&](auto t) {
        c.make = [args...] { return std::make_unique<K<decltype(t)>>(args...); };
      }))
    c.refusal = fmt::format("no {} of {}", what, name_of(type));
}

/// Returns why the kernels of this file's users cannot take the operands; empty if they can.
inline std::string refusal_of_layouts(const KernelRequest& r) {
  for (const std::vector<TensorDesc>* side : {&r.in, &r.out})
    for (const TensorDesc& d : *side)
      if (!is_dense(d)) return fmt::format("{} is padded or its samples are not apart", d);
  return {};
}

/// Returns a candidate with the request's descs, where free operands are plain and f32.
inline KernelCandidate candidate_for(const KernelRequest& r, std::string name) {
  KernelCandidate c{.name = std::move(name), .refusal = {}, .in = r.in, .out = r.out, .make = {}};
  for (size_t i = 0; i < c.in.size(); ++i)
    if (i < r.in_free.size() && r.in_free[i]) c.in[i] = {DType::f32, r.in[i].shape, {}};
  for (size_t i = 0; i < c.out.size(); ++i)
    if (i < r.out_free.size() && r.out_free[i]) c.out[i].layout = Layout::plain();
  return c;
}

/// Returns this part's share of n things.
inline std::pair<int64_t, int64_t> share(int64_t n, int part, int parts) {
  return {n * part / parts, n * (part + 1) / parts};
}

}  // namespace tutti::backend
