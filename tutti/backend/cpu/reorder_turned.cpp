// Reorders activations between plain and channels last: a transposition of each sample's channels
// and positions, 16 x 16 in registers. Numbers of 32 bits are moved as they are.

#include <algorithm>
#include <cstring>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/simd/simd.h"
#include "tutti/backend/cpu/simd/simd_transpose.h"
#include "tutti/ops/reorder.h"

namespace tutti::backend {
namespace {

using simd::kLanes, simd::Row;

/// With fewer rows or columns no block is full, and the loops of reorder.cpp are faster.
constexpr int64_t kFewestOfSide = kLanes;

/// from [samples, rows, columns] -> to [samples, columns, rows]; parts share strips of 16 rows.
class TransposeKernel final : public Kernel {
 public:
  TransposeKernel(int64_t samples, int64_t rows, int64_t columns)
      : samples_(samples), rows_(rows), columns_(columns) {}
  void run(const KernelArgs& args) override {
    const int64_t strips = (rows_ + kLanes - 1) / kLanes;
    const auto [begin, end] = share(samples_ * strips, args.thread, args.threads);
    for (int64_t s = begin; s < end; ++s) {
      const int64_t sample = s / strips * rows_ * columns_, row = s % strips * kLanes;
      for (int64_t column = 0; column < columns_; column += kLanes)
        turn(static_cast<const float*>(args.in[0]) + sample + row * columns_ + column,
             static_cast<float*>(args.out[0]) + sample + column * rows_ + row,
             std::min<int64_t>(kLanes, rows_ - row), std::min<int64_t>(kLanes, columns_ - column));
    }
  }

 private:
  void turn(const float* from, float* to, int64_t rows, int64_t columns) const {
    Row block[kLanes]{};
    if (rows == kLanes && columns == kLanes) {
      for (int64_t i = 0; i < kLanes; ++i) std::memcpy(&block[i], from + i * columns_, sizeof(Row));
      simd::transpose(block);
      for (int64_t i = 0; i < kLanes; ++i) std::memcpy(to + i * rows_, &block[i], sizeof(Row));
      return;
    }
    const auto bytes = [](int64_t n) { return static_cast<size_t>(n) * sizeof(float); };
    for (int64_t i = 0; i < rows; ++i) std::memcpy(&block[i], from + i * columns_, bytes(columns));
    simd::transpose(block);
    for (int64_t i = 0; i < columns; ++i) std::memcpy(to + i * rows_, &block[i], bytes(rows));
  }

  int64_t samples_, rows_, columns_;
};

KernelCandidates turned_reorder(const KernelRequest& r) {
  const TensorDesc &from = r.in[0], &to = r.out[0];
  const int rank = from.shape.rank();
  if (rank < 3 || from.dtype != to.dtype || size_of(from.dtype) != sizeof(float)) return {};
  const Layout plain = Layout::plain(), last = Layout::channels_last(rank);
  const bool forward = from.layout == plain && to.layout == last;
  if (!forward && !(from.layout == last && to.layout == plain)) return {};
  int64_t rows = from.shape[1], columns = from.shape.elements_from(2);
  if (std::min(rows, columns) < kFewestOfSide) return {};
  if (!forward) std::swap(rows, columns);
  KernelCandidate c{"cpu:reorder_turned", {}, r.in, r.out, {}};
  c.make = [samples = from.shape[0], rows, columns] {
    return std::make_unique<TransposeKernel>(samples, rows, columns);
  };
  return {std::move(c)};
}

}  // namespace

void register_turned_reorder(KernelTable& table) {
  constexpr int kBeforeAny = 0;  // the loops of reorder.cpp take any layout, and are slower
  table.add<ops::Reorder>(turned_reorder, kBeforeAny);
}

}  // namespace tutti::backend
