// Reorder for CPUs: converts any layout and type to any other. Padding of the output's layout is
// written as zeros. Walk::whole: parts share the work.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/reorder_blocks.h"
#include "tutti/base/error.h"
#include "tutti/ops/reorder.h"

namespace tutti::backend {
namespace {

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, uint8_t> || std::is_same_v<To, int32_t>) {
    using Limits = std::numeric_limits<To>;
    const double wide = std::nearbyint(static_cast<double>(static_cast<float>(value)));
    return static_cast<To>(
        std::clamp(wide, static_cast<double>(Limits::min()), static_cast<double>(Limits::max())));
  } else {
    return static_cast<To>(static_cast<float>(value));
  }
}

// Every layout's offset is a sum of one term per dimension, so a table per dimension replaces the
// arithmetic.
struct Axis {
  int64_t extent = 1;  ///< extent of the tensor
  int64_t padded = 1;  ///< extent in the output's storage
  std::vector<int64_t> from, to;
};

Axis axis_of(const TensorDesc& from, const TensorDesc& to, int dim) {
  return {from.shape[dim], to.layout.padded(to.shape, dim), from.layout.terms(from.shape, dim),
          to.layout.terms(to.shape, dim, true)};
}

/// Returns the dimension whose neighbours lie next to each other in the output.
int fastest_dim(const TensorDesc& to) {
  const int rank = to.shape.rank();
  return to.layout.num_blocks > 0
             ? to.layout.blocks[static_cast<size_t>(to.layout.num_blocks - 1)].dim
             : to.layout.order[static_cast<size_t>(rank - 1)];
}

template <class From, class To>
class ReorderKernel final : public Kernel {
 public:
  ReorderKernel(const TensorDesc& from, const TensorDesc& to) {
    const int rank = from.shape.rank();
    // With two blocks of one dimension (8i16o2i) the other blocked dimension gives the longer runs.
    int inner = fastest_dim(to);
    if (to.layout.num_blocks == 3) inner = to.layout.blocks[1].dim;
    if (rank > 1 && inner == 0 && to.layout.num_blocks == 0) inner = rank - 1;
    for (int d = 0; d < rank; ++d)
      if (d != inner) axes_.push_back(axis_of(from, to, d));
    inner_ = axis_of(from, to, inner);
    split_ = axes_.empty() ? nullptr : &axes_[0];
  }
  ReorderKernel(const ReorderKernel&) = delete;

  void run(const KernelArgs& args) override {
    const Axis& split = split_ != nullptr ? *split_ : inner_;
    const int64_t begin = split.padded * args.thread / args.threads,
                  end = split.padded * (args.thread + 1) / args.threads;
    const auto* const from = static_cast<const From*>(args.in[0]);
    auto* const to = static_cast<To*>(args.out[0]);
    if (split_ == nullptr) return line(from, to, begin, end);
    for (int64_t i = begin; i < end; ++i)
      walk(1, i < split.extent ? from + split.from[static_cast<size_t>(i)] : nullptr,
           to + split.to[static_cast<size_t>(i)]);
  }

 private:
  /// Walks the axes from `depth` on, then the inner one; from == nullptr: padding, zeros.
  void walk(size_t depth, const From* from, To* to) {
    if (depth == axes_.size()) return line(from, to, 0, inner_.padded);
    const Axis& axis = axes_[depth];
    for (int64_t i = 0; i < axis.padded; ++i) {
      const auto k = static_cast<size_t>(i);
      walk(depth + 1, from != nullptr && i < axis.extent ? from + axis.from[k] : nullptr,
           to + axis.to[k]);
    }
  }
  void line(const From* __restrict from, To* __restrict to, int64_t begin, int64_t end) {
    const int64_t* const read = inner_.from.data();
    const int64_t* const write = inner_.to.data();
    const int64_t filled = from == nullptr ? begin : std::clamp(inner_.extent, begin, end);
    for (int64_t i = begin; i < filled; ++i) to[write[i]] = convert<To>(from[read[i]]);
    for (int64_t i = filled; i < end; ++i) to[write[i]] = To{};
  }

  std::vector<Axis> axes_;  ///< all but the inner one, in order of dimensions
  Axis inner_;
  const Axis* split_ = nullptr;  ///< the axis that parts share: the first
};

/// Copies where layout and type of storage are the same, or converts contiguously: one run over
/// memory.
template <class From, class To>
class ConvertKernel final : public Kernel {
 public:
  explicit ConvertKernel(int64_t elements) : elements_(elements) {}
  void run(const KernelArgs& args) override {
    const auto* __restrict const from = static_cast<const From*>(args.in[0]);
    auto* __restrict const to = static_cast<To*>(args.out[0]);
    const int64_t end = elements_ * (args.thread + 1) / args.threads;
    for (int64_t i = elements_ * args.thread / args.threads; i < end; ++i)
      to[i] = convert<To>(from[i]);
  }

 private:
  int64_t elements_;
};

using Make = std::function<std::unique_ptr<Kernel>()>;

template <class From, class To>
Make make_for(const TensorDesc& from, const TensorDesc& to) {
  if (from.layout == to.layout || from.shape.rank() == 0)
    return [elements = to.layout.storage_elements(to.shape)] {
      return std::make_unique<ConvertKernel<From, To>>(elements);
    };
  return [from, to] { return std::make_unique<ReorderKernel<From, To>>(from, to); };
}

template <class From>
Make make_from(const TensorDesc& from, const TensorDesc& to) {
  switch (to.dtype) {
    case DType::f32: return make_for<From, float>(from, to);
    case DType::bf16: return make_for<From, bf16>(from, to);
    case DType::i32: return make_for<From, int32_t>(from, to);
    case DType::u8: return make_for<From, uint8_t>(from, to);
  }
  return {};
}

Make make_any(const TensorDesc& from, const TensorDesc& to) {
  switch (from.dtype) {
    case DType::f32: return make_from<float>(from, to);
    case DType::bf16: return make_from<bf16>(from, to);
    case DType::i32: return make_from<int32_t>(from, to);
    case DType::u8: return make_from<uint8_t>(from, to);
  }
  return {};
}

}  // namespace

void register_reorder_kernels(KernelTable& table) {
  table.add<ops::Reorder>([](const KernelRequest& request) -> KernelCandidate {
    const TensorDesc &from = request.in[0], &to = request.out[0];
    CHECK(from.shape == to.shape, "reorder of {} to {}", from.to_string(), to.to_string());
    if (auto blocks = from == to ? nullptr : maker_of_block_reorder(from, to))
      return {"cpu:reorder_blocks", {}, request.in, request.out, std::move(blocks)};
    return {"cpu:reorder", {}, request.in, request.out, make_any(from, to)};
  });
}

}  // namespace tutti::backend
