#include <algorithm>
#include <vector>

#include "tutti/backend/cpu/conv/winograd_kernels.h"
#include "tutti/backend/cpu/conv/winograd_points.h"

namespace tutti::backend::winograd {
namespace {

using matrix::kColumns, matrix::kDepth, matrix::kGap, matrix::kMostRows, matrix::panels_of,
    matrix::part_of, matrix::parts_of;

/// Tiles that are multiplied at a time: as many as fill this many bytes with one plane, within
/// limits.
constexpr int64_t kBlockBytes = 640 << 10, kFewestTiles = 2 * kMostRows, kMostTiles = 6 * kMostRows;
/// Filters' points of up to this many bytes are made once a call. For larger filters only the
/// points of some panels exist at a time, and each group of panels is used with the data's
/// points of as many tiles as this.
constexpr int64_t kFilterBytes = 2 << 20, kGroupBytes = 768 << 10, kRunBytes = 8 << 20;

/// T: float or bf16, the type of activations.
template <class T, bool kDeep, Along kAlong>
class DataKernel final : public Kernel {
 public:
  explicit DataKernel(const DataProblem& problem)
      : p_(problem), tiles_(p_.sliding, kAlong), total_(p_.samples * tiles_.count()),
        panels_(panels_of(p_.to)), sizes_(sizes_of(p_, tiles_, total_, panels_)),
        points_(p_.sliding, p_.from, sizes_.run), rows_(static_cast<size_t>(P * sizes_.block)) {}

  size_t workspace_bytes() const override {
    return points_.bytes() + filter_bytes() + sums_bytes() +
           (kPartial ? static_cast<size_t>(panels_ * sizes_.run * R * kColumns) * sizeof(float)
                     : 0);
  }

  void run(const KernelArgs& args) override {
    auto* const memory = static_cast<std::byte*>(args.workspace);
    data_ = reinterpret_cast<T*>(memory);
    filter_ = reinterpret_cast<Term*>(memory + points_.bytes());
    sums_ = reinterpret_cast<float*>(memory + points_.bytes() + filter_bytes());
    results_ = reinterpret_cast<float*>(memory + points_.bytes() + filter_bytes() + sums_bytes());
    for (int64_t p = 0; p < P; ++p)
      for (int64_t i = 0; i < sizes_.block; ++i)
        rows_[static_cast<size_t>(p * sizes_.block + i)] =
            sums_ + (p * kPanels * sizes_.block + i) * kColumns;
    const auto* const w = static_cast<const float*>(args.in[1]);
    const auto* const bias = p_.bias ? static_cast<const float*>(args.in[2]) : nullptr;
    for (int64_t first = 0; first < total_; first += sizes_.run) {
      const int64_t count = std::min(sizes_.run, total_ - first);
      for_planes<kDeep>([&](auto z) {
        points_.make(z, static_cast<const T*>(args.in[0]), first, count, data_);
        for (int64_t g = 0; g < panels_; g += sizes_.group) {
          const int64_t panels = std::min(sizes_.group, panels_ - g);
          Term* const filter = filter_ + (sizes_.kept ? z * panels_ * P * filter_point() : 0);
          if (first == 0 || !sizes_.kept) filter_to_points(z, w, g, panels, filter);
          const int64_t blocks = parts_of(count, sizes_.block);
          for (int64_t b = 0; b < blocks; ++b) {
            const auto [begin, end] = part_of(count, b, blocks);
            for (int64_t j = 0; j < panels; j += kPanels) {
              const int64_t width = std::min(kPanels, panels - j);
              multiply(filter + j * P * filter_point(), begin, end - begin, width);
              for (int64_t k = 0; k < width; ++k)
                points_to_results(z, static_cast<T*>(args.out[0]), bias, begin, end - begin,
                                  g + j + k, k);
            }
          }
        }
      });
      if constexpr (kSpread)
        for (int64_t panel = 0; panel < panels_; ++panel)
          add_rows(static_cast<T*>(args.out[0]), panel, count);
    }
  }

 private:
  using Points = DataPoints<T, kDeep, kAlong>;
  static constexpr bool kSpread = kAlong == Along::spread;
  /// Results are first in parts: of planes, or of tiles that overlap.
  static constexpr bool kPartial = kDeep || kSpread;
  /// The transform of the first dimension's points to rows of results.
  using Last = std::conditional_t<kSpread, PointsToData, PointsToResults>;
  static constexpr int P = kPlane, R = Points::R, kAllTaps = power(kTaps, kDeep);
  static constexpr int kRowOfResults = R / Last::kTo;  ///< results in a row of the first dimension
  using Term = TermsOf<T>;
  static constexpr int64_t kTerms = kTermsOf<T>;
  struct Sizes {
    int64_t block, run, group;  ///< tiles multiplied at a time, tiles with points at a time; panels
    bool kept;                  ///< keeps the points of all filters, for all planes
  };
  static Sizes sizes_of(const DataProblem& p, const Tiles& tiles, int64_t total, int64_t panels) {
    const int64_t tile_bytes = Points::bytes_of_tile(p.from);
    const int64_t panel_bytes = P * p.from * kColumns * static_cast<int64_t>(sizeof(T));
    Sizes s{};
    s.block =
        std::clamp(kBlockBytes / tile_bytes / kMostRows * kMostRows, kFewestTiles, kMostTiles);
    s.run = s.block;
    s.group = panels;
    const int64_t all = planes(kDeep) * panels * panel_bytes;
    s.kept = all <= kFilterBytes;
    if (!s.kept) {
      s.group = std::max(kGroupBytes / panel_bytes / kPanels, int64_t{1}) * kPanels;
      s.run = std::max({s.block, kRunBytes / tile_bytes, all / 2 / tile_bytes});
    }
    const int64_t sheet = kSpread ? tiles.column() * tiles.beside() : 1;
    s.run = std::min(std::max(s.run / sheet, int64_t{1}) * sheet, total);
    return {std::min(s.block, s.run), s.run, std::min(s.group, panels), s.kept};
  }

  size_t filter_bytes() const {
    const int64_t planes_kept = sizes_.kept ? planes(kDeep) : 1;
    return workspace_part(static_cast<size_t>(planes_kept * sizes_.group * P * filter_point()) *
                          sizeof(Term));
  }
  size_t sums_bytes() const {
    return workspace_part(static_cast<size_t>(P * kPanels * sizes_.block * kColumns) *
                          sizeof(float));
  }

  /// Returns the terms of one point, or tap, of a panel.
  int64_t terms() const { return p_.from / kTerms * kColumns; }
  /// Returns the distance between points: with a gap, or all would share the same sets of the
  /// caches.
  int64_t filter_point() const { return terms() + kGap; }

  /// Returns the tap that is multiplied by the data's `t`-th number.
  int tap_of(int t) const {
    if (!p_.mirrored) return t;
    constexpr int kRowOfTaps = kAllTaps / kTaps;
    return kSpread ? t / kRowOfTaps * kRowOfTaps + kRowOfTaps - 1 - t % kRowOfTaps
                   : kAllTaps - 1 - t;
  }

  /// Makes plane z of panels [first, first + count): [count][P][from][16], or pairs of channels.
  template <int kZ>
  void filter_to_points(std::integral_constant<int, kZ>, const float* w, int64_t first,
                        int64_t count, Term* filter) {
    const int64_t tap = p_.from * kColumns;
    for (int64_t j = 0; j < count; ++j) {
      const float* const from = w + (first + j) * kAllTaps * tap;
      Term* const to = filter + j * P * filter_point();
      const auto load = [&](int64_t c) {
        return
            [=, this](int t) { return simd::load(from + tap_of(t) * tap + c, simd::AllLanes{}); };
      };
      for (int64_t k = 0; k < terms(); k += kColumns) {
        const auto store = [&](int p, auto v) { simd::store_as(to + p * filter_point() + k, v); };
        if constexpr (kTerms == 1)
          transform_plane<FilterToPoints, FilterToPoints, kDeep, kZ>(load(k), store);
        else
          transform_pairs<FilterToPoints, FilterToPoints, kDeep, kZ>(load(2 * k),
                                                                     load(2 * k + kColumns), store);
      }
    }
  }

  /// Multiplies tiles [first, first + count) by `width` panels into sums_,
  /// [P][kPanels][sizes_.block][16].
  void multiply(const Term* filter, int64_t first, int64_t count, int64_t width) {
    const int64_t depth = p_.from / kTerms, depths = parts_of(depth, kDepth);
    const int64_t row = points_.row() / kTerms, point = points_.point() / kTerms;
    const auto* const data = reinterpret_cast<const Term*>(data_);
    for (int64_t p = 0; p < P; ++p)
      for (int64_t d = 0; d < depths; ++d) {
        const auto [begin, end] = part_of(depth, d, depths);
        matrix::multiply_block<Term>({.a = data + p * point + first * row + begin,
                                      .a_row = row,
                                      .a_step = 1,
                                      .b = filter + p * filter_point() + begin * kColumns,
                                      .b_panel = P * filter_point(),
                                      .depth = end - begin,
                                      .c = rows_.data() + p * sizes_.block,
                                      .c_panel = sizes_.block * kColumns,
                                      .add = d > 0},
                                     count, width * kColumns);
      }
  }

  /// Adds plane z of the `at`-th panel in sums_, which is `panel` among all; makes y once all
  /// planes are there.
  template <int kZ>
  void points_to_results(std::integral_constant<int, kZ> z, T* y, const float* bias, int64_t first,
                         int64_t count, int64_t panel, int64_t at) {
    const int64_t column = panel * kColumns, left = p_.to - column;
    if (left < kColumns)
      points_to_results(z, y, bias, first, count, panel, at,
                        simd::SomeLanes{static_cast<int>(left)});
    else
      points_to_results(z, y, bias, first, count, panel, at, simd::AllLanes{});
  }
  template <int kZ, class Lanes>
  void points_to_results(std::integral_constant<int, kZ>, T* y, const float* bias, int64_t first,
                         int64_t count, int64_t panel, int64_t at, Lanes lanes) {
    const int64_t column = panel * kColumns;
    const simd::Floats shift = bias ? simd::load(bias + column, lanes) : simd::Floats{};
    for (int64_t i = 0; i < count; ++i) {
      const float* const from = sums_ + (at * sizes_.block + i) * kColumns;
      const int64_t* const made = points_.made(first + i);
      float* const partial = results_ + (panel * sizes_.run + first + i) * R * kColumns;
      const auto finish = [&](int r, simd::Floats v) {
        if (made[r] < 0) return;
        v += shift;
        if (p_.relu && p_.slope == 0) v = simd::relu(v);
        if (p_.relu && p_.slope != 0) v = simd::select(v < simd::Floats{}, v * p_.slope, v);
        simd::store(y + made[r] * p_.to + column, v, lanes);
      };
      // In three dimensions, transforms a plane: its part of every row of results.
      using OfPlane = std::conditional_t<kDeep, PointsToResults, Last>;
      transform_flat<OfPlane, PointsToResults>(
          [&](int p) {
            return simd::load(from + p * kPanels * sizes_.block * kColumns, simd::AllLanes{});
          },
          [&](int r, simd::Floats v) {
            if constexpr (kDeep)
              add_plane<kZ>(partial, r, v, finish);
            else if constexpr (kSpread)
              simd::store(partial + r * kColumns, v, simd::AllLanes{});
            else
              finish(r, v);
          });
    }
  }
  /// Adds the part of plane kZ to each row's r-th result: the first plane begins the sum, and the
  /// last one ends it, with `finish` unless another tile has a part in it.
  template <int kZ, class Finish>
  static void add_plane(float* partial, int r, simd::Floats v, Finish finish) {
    for_rows([&](auto row) {
      constexpr int kRow = decltype(row)::value, kPart = Last::kParts[kZ][kRow];
      if constexpr (kPart != 0) {
        const int at = kRow * kRowOfResults + r;
        float* const sum = partial + at * kColumns;
        simd::Floats so_far = kPart > 0 ? v : simd::Floats{} - v;
        if constexpr (has_part(kRow, 0, kZ)) {
          const simd::Floats before = simd::load(sum, simd::AllLanes{});
          so_far = kPart > 0 ? before + v : before - v;
        }
        if constexpr (kSpread || has_part(kRow, kZ + 1, kPoints))
          simd::store(sum, so_far, simd::AllLanes{});
        else
          finish(at, so_far);
      }
    });
  }
  /// Returns whether any of planes [first, last) has a part in the row.
  static constexpr bool has_part(int row, int first, int last) {
    for (int z = first; z < last; ++z)
      if (Last::kParts[z][row] != 0) return true;
    return false;
  }
  template <class F>
  static void for_rows(F f) {
    [&]<int... row>(std::integer_sequence<int, row...>) {
      (f(std::integral_constant<int, row>{}), ...);
    }
    (std::make_integer_sequence<int, Last::kTo>{});
  }

  /// Writes the rows of dx of a run's tiles in one panel: the first two rows of a tile are also the
  /// last two of the tile above it in its sheet.
  void add_rows(T* dx, int64_t panel, int64_t count) {
    const int64_t column = panel * kColumns, left = p_.to - column;
    if (left < kColumns)
      add_rows(dx + column, panel, count, simd::SomeLanes{static_cast<int>(left)});
    else
      add_rows(dx + column, panel, count, simd::AllLanes{});
  }
  template <class Lanes>
  void add_rows(T* dx, int64_t panel, int64_t count, Lanes lanes) {
    constexpr int kOverlap = R / 2;
    const int64_t above = tiles_.beside() * R * kColumns;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = i / tiles_.beside() % tiles_.column();
      const bool first = row == 0, last = row == tiles_.column() - 1;
      const int64_t* const made = points_.made(i);
      const float* const of_tile = results_ + (panel * sizes_.run + i) * R * kColumns;
      for (int r = 0; r < (last ? R : kOverlap); ++r) {
        if (made[r] < 0) continue;
        simd::Floats v = simd::load(of_tile + r * kColumns, simd::AllLanes{});
        if (!first && r < kOverlap)
          v += simd::load(of_tile - above + (r + kOverlap) * kColumns, simd::AllLanes{});
        simd::store(dx + made[r] * p_.to, v, lanes);
      }
    }
  }

  DataProblem p_;
  Tiles tiles_;
  int64_t total_, panels_;  ///< tiles of all samples, panels of results
  Sizes sizes_;
  Points points_;
  std::vector<float*> rows_;  ///< [P][sizes_.block]: where a tile's sums lie
  T* data_ = nullptr;
  Term* filter_ = nullptr;
  float* sums_ = nullptr;
  float* results_ = nullptr;  ///< set if kPartial: [panels][tiles of a run][R][16]
};

/// Returns whether spreading a gradient of data takes fewer tiles. Long sheets, whose tiles must
/// stay together, are left alone: they gain little.
bool spreads(const DataProblem& p) {
  constexpr int64_t kLongest = 16;
  const size_t first = p.sliding.kernel[0] == kTaps ? 0 : 1;
  if (!p.mirrored || p.sliding.dilation[first] != 1) return false;
  const int64_t tiles = parts_of(p.sliding.x[first], int64_t{kResults});
  return tiles <= kLongest && tiles < parts_of(p.sliding.y[first], int64_t{kResults});
}

template <class T, bool kDeep>
using GatheredKernel = DataKernel<T, kDeep, Along::gathered>;
template <class T, bool kDeep>
using SpreadKernel = DataKernel<T, kDeep, Along::spread>;

}  // namespace

std::unique_ptr<Kernel> make_data_kernel(const DataProblem& problem, DType type) {
  return spreads(problem) ? kernel_of<SpreadKernel>(problem, type)
                          : kernel_of<GatheredKernel>(problem, type);
}

}  // namespace tutti::backend::winograd
