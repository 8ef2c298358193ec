#include "tutti/data/transform/field_writer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/data/transform/field_fit.h"

namespace tutti::data {
namespace {

/// Larger tables would not stay in the cache.
constexpr int64_t kMostTableEntries = 1 << 18;
/// Elements whose values are changed in one block.
constexpr int64_t kBlock = 256;
/// Shorter rows are not used as the inner loop if there is a longer axis.
constexpr int64_t kShortRow = 16;

/// Returns the distance between neighbours if it is constant (1 for a single element), else 0.
int64_t common_stride(const std::vector<int64_t>& offsets) {
  const int64_t stride = offsets.size() > 1 ? offsets[1] : 1;
  for (size_t i = 0; i < offsets.size(); ++i)
    if (offsets[i] != static_cast<int64_t>(i) * stride) return 0;
  return stride;
}

// Places along a row of the result: contiguous, evenly spaced, or from a table. They are types, so
// that each gets its own inner loop.
struct Contiguous {
  int64_t operator()(int64_t x) const { return x; }
};
struct Strided {
  int64_t stride;
  int64_t operator()(int64_t x) const { return x * stride; }
};
struct Tabled {
  const int64_t* offsets;
  int64_t operator()(int64_t x) const { return offsets[x]; }
};

template <class Body>
void with_places(int64_t stride, const std::vector<int64_t>& offsets, Body body) {
  if (stride == 1)
    body(Contiguous{});
  else if (stride > 0)
    body(Strided{stride});
  else
    body(Tabled{offsets.data()});
}

}  // namespace

Chance::Chance(uint64_t seed, int64_t epoch, int64_t index)
    : seed_(seed), stream_(static_cast<uint64_t>(epoch) << 40 | static_cast<uint64_t>(index)) {
  Rng rng(seed_, Purpose::augment, stream_);
  for (uint32_t& draw : draws_) draw = rng.next_u32();
}

FieldWriter::FieldWriter(const Field& stored, const FieldSteps& steps, const TensorDesc& batch,
                         std::optional<BatchRows> rows)
    : stored_(stored), placement_(steps.placement),
      values_(stored,
              placed_shape(stored, steps.placement).rank() > 0
                  ? placed_shape(stored, steps.placement)[0]
                  : 1,
              steps.values),
      batch_(batch), rows_(rows), permuted_(stored.shape),
      placed_(placed_shape(stored, steps.placement)) {
  const int rank = placed_.rank();
  CHECK(rank < Shape::kMaxRank, "a batch {} for the field '{}'", batch.to_string(), stored.name);
  if (batch.dtype == DType::i32 && (!is_integer(stored.element) || !values_.is_identity()))
    throw ConfigError(fmt::format(
        "the field '{}' must be whole numbers, without steps that change values: the network takes "
        "class numbers; model.task = \"regress\" learns numbers",
        stored.to_string()));
  const FieldAxes axes = fitted_axes(stored, placed_, batch);
  for (int d = rank - 1, from = 0; d >= 0; --d) {
    from = placement_.permute.empty() ? d : placement_.permute[static_cast<size_t>(d)];
    permuted_[d] = stored.shape[from];
    stored_stride_[static_cast<size_t>(d)] = stored.shape.elements_from(from + 1);
  }
  for (int d = 0; d <= rank; ++d) {
    const auto at = static_cast<size_t>(d);
    const int to = d == 0 ? 0 : axes[at - 1];
    offset_[at] = d > 0 && to == 0 ? std::vector<int64_t>{0} : batch.layout.terms(batch.shape, to);
    offset_stride_[at] = common_stride(offset_[at]);
  }
  if (rows) {
    const auto along = std::find(axes.begin(), axes.begin() + rank, rows->dim);
    if (along == axes.begin() + rank)
      rows_.reset();
    else
      rows_->dim = static_cast<int>(along - axes.begin()) + 1;
  }
  if (rank == 0) {  // treated as one element along an axis
    offset_[1] = {0};
    offset_stride_[1] = 1;
  }
  if (batch.dtype != DType::i32) make_tables();
}

void FieldWriter::make_tables() {
  const int64_t entries = size_of(stored_.element) == 1   ? 256
                          : size_of(stored_.element) == 2 ? 65536
                                                          : 0;
  const int64_t tables = values_.by_channel() ? placed_[0] : 1;
  if (entries == 0 || entries * tables > kMostTableEntries) return;
  table_entries_ = entries;
  for (int64_t c = 0; c < tables; ++c) {
    std::vector<float> table(static_cast<size_t>(entries));
    std::vector<uint8_t> bytes(table.size());
    std::vector<uint16_t> pairs(table.size());
    std::iota(bytes.begin(), bytes.end(), uint8_t{0});
    std::iota(pairs.begin(), pairs.end(), uint16_t{0});
    to_f32(stored_.element, entries == 256 ? static_cast<const void*>(bytes.data()) : pairs.data(),
           entries, table.data());
    values_.apply(table, c, false);
    floats_.insert(floats_.end(), table.begin(), table.end());
  }
  if (batch_.dtype != DType::bf16) return;
  for (const float y : floats_) halves_.emplace_back(y);
  floats_.clear();
}

std::array<FieldWriter::Window, kMostAxes> FieldWriter::windows(const Chance* chance) const {
  std::array<Window, kMostAxes> windows;
  const int rank = placed_.rank();
  const int cropped = !placement_.crops            ? 0
                      : placement_.extents.empty() ? 2
                                                   : static_cast<int>(placement_.extents.size());
  for (int a = 0; a < std::min(rank, kMostAxes); ++a) {
    Window& window = windows[static_cast<size_t>(a)];
    if (a < cropped) {
      const int d = rank - 1 - a;
      const int64_t spare = permuted_[d] + 2 * placement_.pad - placed_[d];
      window.start = (chance ? chance->crop(a, spare + 1) : spare / 2) - placement_.pad;
    }
    window.mirrored = chance && (placement_.flip >> a & 1) != 0 && chance->flip(a);
  }
  return windows;
}

int FieldWriter::place(const Chance* chance, Axes3& axes) const {
  const std::array<Window, kMostAxes> window = windows(chance);
  const int rank = placed_.rank();
  if (rank == 0) {
    axes[0] = {.dim = 1, .begin = 0, .stride = 0, .first = 0, .last = 1, .extent = 1, .end_at = 1};
    return 1;
  }
  std::array<int, kMostAxes> source = {0, 1, 2};
  std::array<bool, kMostAxes> turned{};
  if (chance && placement_.symmetries != 0) {
    const int sides = placement_.symmetries == 0b111 ? 3 : 2;
    const int64_t orders = sides == 3 ? 6 : 2, all = orders << sides;
    const int64_t drawn = chance->symmetry(all);
    for (int64_t i = drawn % orders; i > 0; --i)
      std::next_permutation(source.begin(), source.begin() + sides);
    for (int a = 0; a < sides; ++a) turned[static_cast<size_t>(a)] = (drawn / orders >> a & 1) != 0;
  }
  for (int d = 0; d < rank; ++d) {
    const int a = rank - 1 - d;  // counted from the last axis
    const bool may_move = a < kMostAxes;
    const int from = may_move ? rank - 1 - source[static_cast<size_t>(a)] : d;
    const Window at = may_move ? window[static_cast<size_t>(rank - 1 - from)] : Window{};
    const bool mirrored = at.mirrored != (may_move && turned[static_cast<size_t>(a)]);
    const int64_t extent = placed_[d], size = permuted_[from],
                  stride = stored_stride_[static_cast<size_t>(from)];
    AxisMap& axis = axes[static_cast<size_t>(d)];
    axis = {.dim = d + 1, .begin = at.start * stride, .stride = stride, .extent = extent};
    axis.stored = placement_.permute.empty() ? from : placement_.permute[static_cast<size_t>(from)];
    axis.end_at = extent;
    if (rows_ && rows_->dim == d + 1) {
      axis.begin_at = rows_->first;
      axis.end_at = rows_->last;
    }
    axis.first = std::clamp<int64_t>(-at.start, 0, extent);
    axis.last = std::clamp<int64_t>(size - at.start, 0, extent);
    if (mirrored) {
      axis.begin += (extent - 1) * stride;
      axis.stride = -stride;
      axis.first = std::exchange(axis.last, extent - axis.first);
      axis.first = extent - axis.first;
    }
  }
  // Reads stored elements in their order, so that the memory of a large sample is walked once.
  std::stable_sort(axes.begin(), axes.begin() + rank, [](const AxisMap& a, const AxisMap& b) {
    return std::abs(a.stride) > std::abs(b.stride);
  });
  // A row of a few channels is shorter than the work of finding it: the previous axis becomes the
  // row, and its elements stay in the cache for the other channels.
  if (rank > 1) {
    AxisMap &inner = axes[static_cast<size_t>(rank - 1)],
            &next = axes[static_cast<size_t>(rank - 2)];
    const bool in_part = rows_ && rows_->dim == next.dim;  // only a part of it is walked
    if (inner.extent < kShortRow && next.extent > inner.extent && !in_part) std::swap(inner, next);
  }
  return rank;
}

/// Calls row() for each row of the result: `from` and `to` are the places of its element 0.
template <class Row>
void FieldWriter::walk(const Axes3& axes, int rank, int64_t position, Row row) const {
  std::array<int64_t, Shape::kMaxRank> index{};
  const int inner = rank - 1;
  for (int k = 0; k < inner; ++k)
    index[static_cast<size_t>(k)] = axes[static_cast<size_t>(k)].begin_at;
  for (;;) {
    int64_t from = axes[static_cast<size_t>(inner)].begin, channel = 0;
    int64_t to = offset_[0][static_cast<size_t>(position)];
    bool outside = false;
    for (int k = 0; k < inner; ++k) {
      const AxisMap& axis = axes[static_cast<size_t>(k)];
      const int64_t i = index[static_cast<size_t>(k)];
      from += axis.begin + i * axis.stride;
      to += offset_[static_cast<size_t>(axis.dim)][static_cast<size_t>(i)];
      outside = outside || i < axis.first || i >= axis.last;
      if (axis.dim == 1) channel = i;
    }
    row(outside, from, to, channel);
    int k = inner - 1;
    while (k >= 0 && ++index[static_cast<size_t>(k)] == axes[static_cast<size_t>(k)].end_at) {
      index[static_cast<size_t>(k)] = axes[static_cast<size_t>(k)].begin_at;
      --k;
    }
    if (k < 0) return;
  }
}

namespace {

/// Writes the stored elements of a row, and the padding before and after.
template <class T, class S, class Places>
void look_up(const S* stored, int64_t stride, int64_t first, int64_t last, int64_t extent,
             const T* table, int64_t step, Places place, T* out) {
  for (int64_t x = 0; x < first; ++x) out[place(x)] = table[x * step];
  if (step == 0) {
    for (int64_t x = first; x < last; ++x) out[place(x)] = table[stored[x * stride]];
  } else {
    for (int64_t x = first; x < last; ++x) out[place(x)] = table[x * step + stored[x * stride]];
  }
  for (int64_t x = last; x < extent; ++x) out[place(x)] = table[x * step];
}

}  // namespace

template <class T>
void FieldWriter::write_from_table(const void* stored, const Axes3& axes, int rank,
                                   int64_t position, void* batch) const {
  const AxisMap& inner = axes[static_cast<size_t>(rank - 1)];
  const auto dim = static_cast<size_t>(inner.dim);
  const bool along = values_.by_channel() && inner.dim == 1;
  const T* tables = nullptr;
  if constexpr (std::is_same_v<T, float>)
    tables = floats_.data();
  else
    tables = halves_.data();
  const auto write_as = [&](const auto* elements) {
    with_places(offset_stride_[dim], offset_[dim], [&](auto place) {
      walk(axes, rank, position, [&](bool outside, int64_t from, int64_t to, int64_t channel) {
        const T* table = tables + (values_.by_channel() ? channel * table_entries_ : 0);
        const int64_t last = outside ? 0 : inner.last;
        look_up(elements + (outside ? 0 : from), inner.stride, outside ? 0 : inner.first, last,
                inner.extent, table, along ? table_entries_ : 0, place,
                static_cast<T*>(batch) + to);
      });
    });
  };
  if (table_entries_ == 256)
    write_as(static_cast<const uint8_t*>(stored));
  else
    write_as(static_cast<const uint16_t*>(stored));
}

template <class T>
void FieldWriter::write_values(const void* stored, const Axes3& axes, int rank, int64_t position,
                               void* batch) const {
  const AxisMap& inner = axes[static_cast<size_t>(rank - 1)];
  const auto dim = static_cast<size_t>(inner.dim);
  const bool along = values_.by_channel() && inner.dim == 1;
  with_elements(stored_.element, stored, [&](const auto* elements) {
    using Element = std::remove_cvref_t<decltype(*elements)>;
    // A step may subtract large numbers that f32 would round first: 2460000.51 days, less a mean.
    using Number = std::conditional_t<std::is_same_v<Element, double> ||
                                          (std::is_integral_v<Element> && sizeof(Element) > 2),
                                      double, float>;
    std::array<Number, kBlock> block;
    walk(axes, rank, position, [&](bool outside, int64_t from, int64_t to, int64_t channel) {
      for (int64_t x = 0; x < inner.extent; x += kBlock) {
        const int64_t count = std::min(kBlock, inner.extent - x);
        const int64_t first = outside ? count : std::clamp<int64_t>(inner.first - x, 0, count),
                      last = outside ? count : std::clamp<int64_t>(inner.last - x, first, count);
        std::fill_n(block.begin(), first, Number{0});
        for (int64_t i = first; i < last; ++i)
          block[static_cast<size_t>(i)] =
              static_cast<Number>(elements[from + (x + i) * inner.stride]);
        std::fill(block.begin() + last, block.begin() + count, Number{0});
        values_.apply(std::span(block).first(static_cast<size_t>(count)), along ? x : channel,
                      along);
        T* out = static_cast<T*>(batch) + to;
        with_places(offset_stride_[dim], offset_[dim], [&](auto place) {
          for (int64_t i = 0; i < count; ++i)
            out[place(x + i)] = T(static_cast<float>(block[static_cast<size_t>(i)]));
        });
      }
    });
  });
}

void FieldWriter::write_numbers(const void* stored, const Axes3& axes, int rank, int64_t position,
                                void* batch) const {
  const AxisMap& inner = axes[static_cast<size_t>(rank - 1)];
  const std::vector<int64_t>& offsets = offset_[static_cast<size_t>(inner.dim)];
  with_elements(stored_.element, stored, [&](const auto* elements) {
    walk(axes, rank, position, [&](bool outside, int64_t from, int64_t to, int64_t) {
      int32_t* out = static_cast<int32_t*>(batch) + to;
      for (int64_t x = 0; x < inner.extent; ++x) {
        const bool there = !outside && x >= inner.first && x < inner.last;
        if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(*elements)>>)
          out[offsets[static_cast<size_t>(x)]] =
              there ? static_cast<int32_t>(elements[from + x * inner.stride]) : 0;
      }
    });
  });
}

FieldRows FieldWriter::stored_rows(const Chance* chance) const {
  if (!rows_) return {};
  Axes3 axes;
  const int rank = place(chance, axes);
  const auto axis = std::find_if(axes.begin(), axes.begin() + rank,
                                 [&](const AxisMap& a) { return a.dim == rows_->dim; });
  if (axis == axes.begin() + rank || axis->stride == 0) return {};
  const int64_t first = std::max(axis->first, rows_->first),
                last = std::min(axis->last, rows_->last);
  if (first >= last) return {.axis = axis->stored};  // only padding
  const int64_t step = std::abs(axis->stride), a = (axis->begin + first * axis->stride) / step,
                b = (axis->begin + (last - 1) * axis->stride) / step;
  return {.axis = axis->stored, .first = std::min(a, b), .last = std::max(a, b) + 1};
}

void FieldWriter::write(const void* stored, const Chance* chance, int64_t position,
                        void* batch) const {
  Axes3 axes;
  const int rank = place(chance, axes);
  if (batch_.dtype == DType::i32) return write_numbers(stored, axes, rank, position, batch);
  const bool tables = table_entries_ > 0;
  if (batch_.dtype == DType::f32)
    return tables ? write_from_table<float>(stored, axes, rank, position, batch)
                  : write_values<float>(stored, axes, rank, position, batch);
  CHECK(batch_.dtype == DType::bf16, "a batch of {}", name_of(batch_.dtype));
  return tables ? write_from_table<bf16>(stored, axes, rank, position, batch)
                : write_values<bf16>(stored, axes, rank, position, batch);
}

}  // namespace tutti::data
