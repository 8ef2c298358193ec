#include "tutti/backend/cpu/kernel/box_copy.h"

#include <algorithm>
#include <cstring>

#include "tutti/backend/cpu/simd/simd.h"
#include "tutti/base/error.h"

namespace tutti::backend {
namespace {

/// True if all neighbours within groups of `size` are as far apart as the first two.
bool is_even(const std::vector<int64_t>& terms, size_t size) {
  for (size_t i = 0; i < terms.size(); ++i)
    if (i % size != 0 && terms[i] - terms[i - 1] != terms[1] - terms[0]) return false;
  return true;
}

/// Returns every size-th term.
std::vector<int64_t> group_terms(const std::vector<int64_t>& terms, size_t size) {
  std::vector<int64_t> first;
  for (size_t i = 0; i < terms.size(); i += size) first.push_back(terms[i]);
  return first;
}

template <class T>
void add_row(int64_t count, const T* x, T* y) {
  const auto add = [&](int64_t i, auto lanes) {
    simd::store(y + i, simd::load(y + i, lanes) + simd::load(x + i, lanes), lanes);
  };
  int64_t i = 0;
  for (; i + simd::kLanes <= count; i += simd::kLanes) add(i, simd::AllLanes{});
  if (i < count) add(i, simd::SomeLanes{static_cast<int>(count - i)});
}

}  // namespace

BoxCopy::BoxCopy(const Terms& from, const Terms& to) {
  CHECK(from.size() == to.size(), "a box of {} and {} dimensions", from.size(), to.size());
  for (size_t d = 0; d < from.size(); ++d) {
    CHECK(!from[d].empty() && from[d].size() == to[d].size(), "dimension {} has {} and {} terms", d,
          from[d].size(), to[d].size());
    from_ += from[d][0];
    to_ += to[d][0];
    add_dimension(from[d], to[d]);
  }
  merge_loops();
}

/// Adds a dimension; a blocked dimension becomes two loops: over the blocks, and within each.
void BoxCopy::add_dimension(std::vector<int64_t> from, std::vector<int64_t> to) {
  while (from.size() > 1) {
    size_t size = from.size();
    while (size > 1 && (from.size() % size != 0 || !is_even(from, size) || !is_even(to, size)))
      --size;
    if (size == 1) {  // blocks that do not begin where the box begins
      Loop loop{.count = static_cast<int64_t>(from.size())};
      for (size_t i = 0; i < from.size(); ++i)
        loop.table.emplace_back(from[i] - from[0], to[i] - to[0]);
      loop.from = loop.table[1].first;
      loop.to = loop.table[1].second;
      loops_.push_back(std::move(loop));
      return;
    }
    loops_.push_back(
        {.count = static_cast<int64_t>(size), .from = from[1] - from[0], .to = to[1] - to[0]});
    from = group_terms(from, size);
    to = group_terms(to, size);
  }
}

/// Sorts loops in the order of writing; two loops that continue each other become one.
void BoxCopy::merge_loops() {
  std::ranges::stable_sort(loops_, [](const Loop& a, const Loop& b) { return a.to > b.to; });
  std::vector<Loop> merged;
  for (Loop& loop : loops_) {
    const bool continues = !merged.empty() && merged.back().table.empty() && loop.table.empty() &&
                           merged.back().from == loop.count * loop.from &&
                           merged.back().to == loop.count * loop.to;
    if (continues)
      merged.back() = {.count = merged.back().count * loop.count, .from = loop.from, .to = loop.to};
    else
      merged.push_back(std::move(loop));
  }
  if (merged.empty()) merged.push_back({.count = 1, .from = 1, .to = 1});
  loops_ = std::move(merged);
}

BoxCopy::Terms terms_of(const TensorDesc& d) {
  BoxCopy::Terms terms;
  for (int k = 0; k < d.shape.rank(); ++k) terms.push_back(d.layout.terms(d.shape, k));
  return terms;
}

bool BoxCopy::in_place() const {
  const Loop& loop = loops_.front();
  return loops_.size() == 1 && loop.table.empty() && loop.from == 1 && loop.to == 1 && from_ == to_;
}

template <class T, class Row>
void BoxCopy::walk(size_t depth, const T* from, T* to, const Row& row) const {
  const Loop& loop = loops_[depth];
  const bool last = depth + 1 == loops_.size();
  if (last && loop.table.empty()) return row(loop.count, from, loop.from, to, loop.to);
  for (int64_t i = 0; i < loop.count; ++i) {
    const auto [at, there] = loop.table.empty() ? std::pair(i * loop.from, i * loop.to)
                                                : loop.table[static_cast<size_t>(i)];
    if (last)
      row(1, from + at, 1, to + there, 1);
    else
      walk(depth + 1, from + at, to + there, row);
  }
}

void BoxCopy::run(const void* from, void* to, size_t element_bytes) const {
  const auto copy = [&]<class T>(T) {
    const auto row = [](int64_t count, const T* x, int64_t x_step, T* y, int64_t y_step) {
      if (x_step == 1 && y_step == 1)
        std::memcpy(y, x, static_cast<size_t>(count) * sizeof(T));
      else
        for (int64_t i = 0; i < count; ++i) y[i * y_step] = x[i * x_step];
    };
    walk<T>(0, static_cast<const T*>(from) + from_, static_cast<T*>(to) + to_, row);
  };
  switch (element_bytes) {
    case 1: return copy(uint8_t{});
    case 2: return copy(uint16_t{});
    case 4: return copy(uint32_t{});
    default: CHECK(false, "elements of {} bytes", element_bytes);
  }
}

void BoxCopy::add(const void* from, void* to, DType type) const {
  const auto sum = [&]<class T>(T) {
    const auto row = [](int64_t count, const T* x, int64_t x_step, T* y, int64_t y_step) {
      if (x_step == 1 && y_step == 1)
        add_row(count, x, y);
      else
        for (int64_t i = 0; i < count; ++i)
          y[i * y_step] = T(static_cast<float>(y[i * y_step]) + static_cast<float>(x[i * x_step]));
    };
    walk<T>(0, static_cast<const T*>(from) + from_, static_cast<T*>(to) + to_, row);
  };
  CHECK(type == DType::f32 || type == DType::bf16, "sums of {}", name_of(type));
  type == DType::f32 ? sum(float{}) : sum(bf16{});
}

}  // namespace tutti::backend
