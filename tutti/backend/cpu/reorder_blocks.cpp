#include "tutti/backend/cpu/reorder_blocks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "tutti/backend/cpu/simd/simd.h"
#include "tutti/backend/cpu/simd/simd_transpose.h"

namespace tutti::backend {
namespace {

using simd::kLanes, simd::Row;

/// The offsets of the indices of one dimension, in elements; each side has as many as its padded
/// extent.
struct Places {
  std::vector<int64_t> from, to;
};

/// The distance in blocks to the block whose lines are prefetched.
constexpr size_t kBlocksAhead = 4;

struct BlockReorder {
  Places rows, lanes;   ///< places of dimensions 0 and 1: lanes are 16 neighbours of the result
  Places others;        ///< all indices of the other dimensions combined
  bool turned = false;  ///< set if the source has the rows' dimension side by side
};

/// Blocks are dealt to parts in the order of the source, so that it is read contiguously: first
/// along the dimension that lies side by side there, then the others, then the remaining one.
template <class To>
class ReorderBlocksKernel final : public Kernel {
 public:
  explicit ReorderBlocksKernel(BlockReorder reorder) : r_(std::move(reorder)) {}
  void run(const KernelArgs& args) override {
    const auto* const from = static_cast<const float*>(args.in[0]);
    auto* const to = static_cast<To*>(args.out[0]);
    const size_t lanes = r_.lanes.to.size() / kLanes, others = r_.others.to.size(),
                 rows = (r_.rows.to.size() + kLanes - 1) / kLanes, inner = r_.turned ? lanes : rows;
    const auto blocks = static_cast<int64_t>(rows * others * lanes);
    const auto at = [&](size_t b) {
      const size_t far = b / inner / others * kLanes, near = b % inner * kLanes;
      return Block{r_.turned ? far : near, r_.turned ? near : far, b / inner % others};
    };
    const auto end = static_cast<size_t>(blocks * (args.thread + 1) / args.threads);
    for (auto b = static_cast<size_t>(blocks * args.thread / args.threads); b < end; ++b) {
      if (b + kBlocksAhead < end) ask_for(at(b + kBlocksAhead), to);
      make(at(b), from, to);
    }
  }

 private:
  struct Block {
    size_t row, lane, other;
  };

  /// Prefetches the result's lines, which lie far apart from block to block: no hardware foresees
  /// them. Inlined, because GCC drops calls of a function that only prefetches.
  [[gnu::always_inline]] void ask_for(const Block& block, const To* to) const {
    to += r_.others.to[block.other] + r_.lanes.to[block.lane];
    const size_t end = std::min(block.row + kLanes, r_.rows.to.size());
    for (size_t row = block.row; row < end; ++row) __builtin_prefetch(to + r_.rows.to[row], 1);
  }

  void make(const Block& block, const float* from, To* to) const {
    Row rows[kLanes]{};  // zeros where the source is not padded as far
    const auto &outer = (r_.turned ? r_.lanes : r_.rows).from,
               &inner = (r_.turned ? r_.rows : r_.lanes).from;
    const size_t first = r_.turned ? block.lane : block.row,
                 side = r_.turned ? block.row : block.lane;
    from += r_.others.from[block.other];
    if (side < inner.size())
      for (size_t i = 0; i < kLanes && first + i < outer.size(); ++i)
        std::memcpy(&rows[i], from + inner[side] + outer[first + i], sizeof(Row));
    if (r_.turned) simd::transpose(rows);
    put(rows, block.row, to + r_.others.to[block.other] + r_.lanes.to[block.lane]);
  }

  void put(const Row (&rows)[kLanes], size_t row, float* to) const {
    for (size_t i = 0; i < kLanes && row + i < r_.rows.to.size(); ++i)
      std::memcpy(to + r_.rows.to[row + i], &rows[i], sizeof(Row));
  }
  void put(const Row (&rows)[kLanes], size_t row, bf16* to) const {
    const auto rounded = [&](size_t i) {
      return simd::bits_of(simd::widen(simd::narrow(simd::load_as<simd::Floats>(&rows[i]))));
    };
    for (size_t i = 0; i < kLanes && row + i < r_.rows.to.size(); i += 2)
      simd::store_as(to + r_.rows.to[row + i], rounded(i + 1) | rounded(i) >> 16);
  }

  BlockReorder r_;
};

std::vector<int64_t> places_of(const TensorDesc& desc, int dim) {
  return desc.layout.terms(desc.shape, dim, true);
}

/// Returns the sums of one place of each dimension from 2 on.
std::vector<int64_t> places_of_others(const TensorDesc& desc) {
  std::vector<int64_t> all{0};
  for (int d = 2; d < desc.shape.rank(); ++d) {
    std::vector<int64_t> longer;
    for (const int64_t before : all)
      for (const int64_t place : places_of(desc, d)) longer.push_back(before + place);
    all = std::move(longer);
  }
  return all;
}

/// Returns the block with number `last` from the end; size 0 if there are fewer.
Layout::Block block_of(const Layout& layout, int last) {
  const int i = layout.num_blocks - 1 - last;
  return i < 0 ? Layout::Block{} : layout.blocks[static_cast<size_t>(i)];
}

bool sixteen(const Layout::Block& block) {
  return block.size > 0 && block.size % kLanes == 0 && block.dim < 2;
}

std::optional<BlockReorder> block_reorder(const TensorDesc& from, const TensorDesc& to) {
  const bool pairs = to.dtype == DType::bf16;
  if (from.dtype != DType::f32 || (!pairs && to.dtype != DType::f32) || from.shape.rank() < 2)
    return std::nullopt;
  const Layout::Block source = block_of(from.layout, 0), lanes = block_of(to.layout, pairs ? 1 : 0);
  if (!sixteen(source) || !sixteen(lanes)) return std::nullopt;
  const int rows = 1 - lanes.dim;
  if (pairs && block_of(to.layout, 0) != Layout::Block{static_cast<int8_t>(rows), 2})
    return std::nullopt;
  for (int d = 2; d < from.shape.rank(); ++d)
    if (from.layout.padded(from.shape, d) != to.layout.padded(to.shape, d)) return std::nullopt;
  return BlockReorder{.rows = {places_of(from, rows), places_of(to, rows)},
                      .lanes = {places_of(from, lanes.dim), places_of(to, lanes.dim)},
                      .others = {places_of_others(from), places_of_others(to)},
                      .turned = source.dim == rows};
}

}  // namespace

std::function<std::unique_ptr<Kernel>()> maker_of_block_reorder(const TensorDesc& from,
                                                                const TensorDesc& to) {
  std::optional<BlockReorder> reorder = block_reorder(from, to);
  if (!reorder) return {};
  return [type = to.dtype, r = std::move(*reorder)]() -> std::unique_ptr<Kernel> {
    if (type == DType::bf16) return std::make_unique<ReorderBlocksKernel<bf16>>(r);
    return std::make_unique<ReorderBlocksKernel<float>>(r);
  };
}

}  // namespace tutti::backend
