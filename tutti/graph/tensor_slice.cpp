#include "tutti/graph/tensor_slice.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::graph {
namespace {

/// Calls f(first element in the whole tensor, first in the part, count) for each run that is
/// contiguous in both.
template <class F>
void for_each_run(const TensorSlice& slice, int rank, F f) {
  const std::vector<Rows> rows = slice.rows(rank);
  int64_t outer = 1;
  for (int d = 0; d < slice.dim; ++d) outer *= slice.whole[d];
  const int64_t inner = slice.whole.elements_from(slice.dim + 1), extent = slice.whole[slice.dim];
  int64_t to = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (const Rows r : rows) {
      f((o * extent + r.first) * inner, to, r.count() * inner);
      to += r.count() * inner;
    }
}

}  // namespace

std::vector<Rows> rows_of_rank(const std::vector<ChannelBlock>& blocks, int ranks, int rank) {
  std::vector<Rows> rows;
  int64_t first = 0;
  for (const ChannelBlock& block : blocks) {
    const int64_t units = block.extent / block.unit;
    rows.push_back({first + units * rank / ranks * block.unit,
                    first + units * (rank + 1) / ranks * block.unit});
    first += block.extent;
  }
  return rows;
}

int64_t count_of(const std::vector<Rows>& rows) {
  int64_t count = 0;
  for (const Rows r : rows) count += r.count();
  return count;
}

std::vector<Rows> TensorSlice::rows(int rank) const { return rows_of_rank(blocks, ranks, rank); }

Shape TensorSlice::shape(int rank) const {
  Shape shape = whole;
  shape[dim] = count_of(rows(rank));
  return shape;
}

void TensorSlice::take(std::span<const float> all, int rank, std::span<float> part) const {
  CHECK(static_cast<int64_t>(part.size()) == shape(rank).elements(), "a slice of {}", whole);
  for_each_run(*this, rank, [&](int64_t from, int64_t to, int64_t count) {
    std::copy_n(all.begin() + from, count, part.begin() + to);
  });
}

void TensorSlice::put(std::span<const float> part, int rank, std::span<float> all) const {
  CHECK(static_cast<int64_t>(all.size()) == whole.elements(), "a slice of {}", whole);
  for_each_run(*this, rank, [&](int64_t to, int64_t from, int64_t count) {
    std::copy_n(part.begin() + from, count, all.begin() + to);
  });
}

}  // namespace tutti::graph
