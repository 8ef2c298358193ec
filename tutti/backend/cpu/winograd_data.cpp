#include <algorithm>
#include <vector>

#include "tutti/backend/cpu/winograd_kernels.h"
#include "tutti/backend/cpu/winograd_points.h"

namespace tutti::winograd {
namespace {

using matrix::kColumns, matrix::kDepth, matrix::kGap, matrix::kMostRows, matrix::panels_of,
    matrix::part_of, matrix::parts_of;

/// Tiles that are multiplied at a time: as many as have planes of this many bytes, within limits.
constexpr int64_t kBlockBytes = 640 << 10, kFewestTiles = 2 * kMostRows, kMostTiles = 6 * kMostRows;
/// Points of the filters of this many bytes are made once a call. Of larger ones only those of some
/// panels are there at a time, and data's points of as many tiles as this take their turns with
/// them.
constexpr int64_t kFilterBytes = 2 << 20, kGroupBytes = 768 << 10, kRunBytes = 8 << 20;

/// T: float or bf16, of activations.
template <class T, bool kDeep>
class DataKernel final : public Kernel {
 public:
  explicit DataKernel(const DataProblem& problem)
      : p_(problem), total_(p_.samples * Tiles(p_.sliding).count()), panels_(panels_of(p_.to)),
        sizes_(sizes_of(p_, total_, panels_)), points_(p_.sliding, p_.from, sizes_.run),
        rows_(static_cast<size_t>(P * sizes_.block)) {}

  size_t workspace_bytes() const override {
    return points_.bytes() + filter_bytes() + sums_bytes() +
           (kDeep ? static_cast<size_t>(panels_ * sizes_.run * R * kColumns) * sizeof(float) : 0);
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
          Term* const filter = filter_ + (sizes_.kept ? z * panels_ * P * terms() : 0);
          if (first == 0 || !sizes_.kept) filter_to_points(z, w, g, panels, filter);
          const int64_t blocks = parts_of(count, sizes_.block);
          for (int64_t b = 0; b < blocks; ++b) {
            const auto [begin, end] = part_of(count, b, blocks);
            for (int64_t j = 0; j < panels; j += kPanels) {
              const int64_t width = std::min(kPanels, panels - j);
              multiply(filter + j * P * terms(), begin, end - begin, width);
              for (int64_t k = 0; k < width; ++k)
                points_to_results(z, static_cast<T*>(args.out[0]), bias, begin, end - begin,
                                  g + j + k, k);
            }
          }
        }
      });
    }
  }

 private:
  static constexpr int P = kPlane, R = power(kResults, kDeep), kAllTaps = power(kTaps, kDeep);
  static constexpr int kResultsOfPlane = power(kResults, false);
  using Term = TermsOf<T>;
  static constexpr int64_t kTerms = kTermsOf<T>;
  struct Sizes {
    int64_t block, run, group;  ///< tiles multiplied at a time, with points at a time; panels
    bool kept;                  ///< the points of all filters, of all planes
  };
  static Sizes sizes_of(const DataProblem& p, int64_t total, int64_t panels) {
    const int64_t tile_bytes = DataPoints<T, kDeep>::bytes_of_tile(p.from);
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
    s.run = std::min(s.run, total);
    return {std::min(s.block, s.run), s.run, std::min(s.group, panels), s.kept};
  }

  size_t filter_bytes() const {
    const int64_t planes_kept = sizes_.kept ? planes(kDeep) : 1;
    return workspace_part(static_cast<size_t>(planes_kept * sizes_.group * P * p_.from * kColumns) *
                          sizeof(T));
  }
  size_t sums_bytes() const {
    return workspace_part(static_cast<size_t>(P * kPanels * sizes_.block * kColumns) *
                          sizeof(float));
  }

  /// Terms of one point, or tap, of a panel.
  int64_t terms() const { return p_.from / kTerms * kColumns; }

  /// Plane z of panels [first, first + count): [count][P][from][16], pairs of channels for one
  /// another.
  template <int kZ>
  void filter_to_points(std::integral_constant<int, kZ>, const float* w, int64_t first,
                        int64_t count, Term* filter) {
    const int64_t tap = p_.from * kColumns;
    for (int64_t j = 0; j < count; ++j) {
      const float* const from = w + (first + j) * kAllTaps * tap;
      Term* const to = filter + j * P * terms();
      const auto load = [&](int64_t c) {
        return [=, this](int t) {
          return simd::load(from + (p_.mirrored ? kAllTaps - 1 - t : t) * tap + c,
                            simd::AllLanes{});
        };
      };
      for (int64_t k = 0; k < terms(); k += kColumns) {
        const auto store = [&](int p, auto v) { simd::store_as(to + p * terms() + k, v); };
        if constexpr (kTerms == 1)
          transform_plane<FilterToPoints, kDeep, kZ>(load(k), store);
        else
          transform_pairs<FilterToPoints, kDeep, kZ>(load(2 * k), load(2 * k + kColumns), store);
      }
    }
  }

  /// Into sums_, [P][kPanels][sizes_.block][16]: tiles [first, first + count) times `width` panels.
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
                                      .b = filter + p * terms() + begin * kColumns,
                                      .b_panel = P * terms(),
                                      .depth = end - begin,
                                      .c = rows_.data() + p * sizes_.block,
                                      .c_panel = sizes_.block * kColumns,
                                      .add = d > 0},
                                     count, width * kColumns);
      }
  }

  /// Of the `at`-th panel in sums_, plane z, which is `panel` of all: y, once all planes are there.
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
      transform<PointsToResults, false>(
          [&](int p) {
            return simd::load(from + p * kPanels * sizes_.block * kColumns, simd::AllLanes{});
          },
          [&](int r, simd::Floats v) {
            if constexpr (kDeep) {
              add_plane<0, kZ>(partial, r, v, finish);
              add_plane<1, kZ>(partial, r, v, finish);
            } else {
              finish(r, v);
            }
          });
    }
  }
  /// The part that points of plane kZ have in result r of the tile's plane kResult: of planes
  /// kResult to kResult + 2, as PointsToResults says; `finish` with the last of these.
  template <int kResult, int kZ, class Finish>
  static void add_plane(float* partial, int r, simd::Floats v, Finish finish) {
    if constexpr (kZ >= kResult && kZ <= kResult + 2) {
      const int at = kResult * kResultsOfPlane + r;
      float* const sum = partial + at * kColumns;
      if constexpr (kZ > kResult) {
        const simd::Floats before = simd::load(sum, simd::AllLanes{});
        v = kResult == 1 ? before - v : before + v;
      }
      if constexpr (kZ == kResult + 2)
        finish(at, v);
      else
        simd::store(sum, v, simd::AllLanes{});
    }
  }

  DataProblem p_;
  int64_t total_, panels_;  ///< tiles of all samples, panels of results
  Sizes sizes_;
  DataPoints<T, kDeep> points_;
  std::vector<float*> rows_;  ///< [P][sizes_.block]: where a tile's sums lie
  T* data_ = nullptr;
  Term* filter_ = nullptr;
  float* sums_ = nullptr;
  float* results_ = nullptr;  ///< [panels][tiles of a run][R][16]: of three dimensions, so far
};

}  // namespace

std::unique_ptr<Kernel> make_data_kernel(const DataProblem& problem, DType type) {
  return kernel_of<DataKernel>(problem, type);
}

}  // namespace tutti::winograd
