#include <algorithm>
#include <vector>

#include "tutti/backend/cpu/winograd_kernels.h"
#include "tutti/backend/cpu/winograd_points.h"

namespace tutti::winograd {
namespace {

using matrix::kColumns, matrix::kDepth, matrix::kGap, matrix::kMostRows, matrix::panels_of,
    matrix::part_of, matrix::parts_of;

/// Tiles that are multiplied at a time: as many as have points of this many bytes, within limits.
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
    return points_.bytes() + filter_bytes() +
           static_cast<size_t>(P * kPanels * sizes_.block * kColumns) * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    auto* const memory = static_cast<std::byte*>(args.workspace);
    data_ = reinterpret_cast<T*>(memory);
    filter_ = reinterpret_cast<Term*>(memory + points_.bytes());
    sums_ = reinterpret_cast<float*>(memory + points_.bytes() + filter_bytes());
    for (int64_t p = 0; p < P; ++p)
      for (int64_t i = 0; i < sizes_.block; ++i)
        rows_[static_cast<size_t>(p * sizes_.block + i)] =
            sums_ + (p * kPanels * sizes_.block + i) * kColumns;
    const auto* const w = static_cast<const float*>(args.in[1]);
    const auto* const bias = p_.bias ? static_cast<const float*>(args.in[2]) : nullptr;
    for (int64_t first = 0; first < total_; first += sizes_.run) {
      const int64_t count = std::min(sizes_.run, total_ - first);
      points_.make(static_cast<const T*>(args.in[0]), first, count, data_);
      for (int64_t g = 0; g < panels_; g += sizes_.group) {
        const int64_t panels = std::min(sizes_.group, panels_ - g);
        if (first == 0 || sizes_.group < panels_) filter_to_points(w, g, panels);
        const int64_t blocks = parts_of(count, sizes_.block);
        for (int64_t b = 0; b < blocks; ++b) {
          const auto [begin, end] = part_of(count, b, blocks);
          for (int64_t j = 0; j < panels; j += kPanels) {
            const int64_t width = std::min(kPanels, panels - j);
            multiply(begin, end - begin, j, width);
            for (int64_t k = 0; k < width; ++k)
              points_to_results(static_cast<T*>(args.out[0]), bias, begin, end - begin, g + j + k,
                                k);
          }
        }
      }
    }
  }

 private:
  static constexpr int P = power(kPoints, kDeep), kAllTaps = power(kTaps, kDeep);
  using Term = TermsOf<T>;
  static constexpr int64_t kTerms = kTermsOf<T>;
  struct Sizes {
    int64_t block, run, group;  ///< tiles multiplied at a time, with points at a time; panels
  };
  static Sizes sizes_of(const DataProblem& p, int64_t total, int64_t panels) {
    const int64_t tile_bytes = DataPoints<T, kDeep>::bytes_of_tile(p.from);
    const int64_t panel_bytes = P * p.from * kColumns * static_cast<int64_t>(sizeof(T));
    Sizes s{};
    s.block =
        std::clamp(kBlockBytes / tile_bytes / kMostRows * kMostRows, kFewestTiles, kMostTiles);
    s.run = s.block;
    s.group = panels;
    if (const int64_t all = panels * panel_bytes; all > kFilterBytes) {
      s.group = std::max(kGroupBytes / panel_bytes / kPanels, int64_t{1}) * kPanels;
      s.run = std::max({s.block, kRunBytes / tile_bytes, all / 2 / tile_bytes});
    }
    s.run = std::min(s.run, total);
    return {std::min(s.block, s.run), s.run, std::min(s.group, panels)};
  }

  size_t filter_bytes() const {
    return workspace_part(static_cast<size_t>(sizes_.group * P * p_.from * kColumns) * sizeof(T));
  }

  /// Terms of one point, or tap, of a panel.
  int64_t terms() const { return p_.from / kTerms * kColumns; }

  /// Of panels [first, first + count) into filter_: [count][P][from][16], pairs of channels for one
  /// another.
  void filter_to_points(const float* w, int64_t first, int64_t count) {
    const int64_t tap = p_.from * kColumns;
    for (int64_t j = 0; j < count; ++j) {
      const float* const from = w + (first + j) * kAllTaps * tap;
      Term* const to = filter_ + j * P * terms();
      const auto load = [&](int64_t c) {
        return [=, this](int t) {
          return simd::load(from + (p_.mirrored ? kAllTaps - 1 - t : t) * tap + c,
                            simd::AllLanes{});
        };
      };
      for (int64_t k = 0; k < terms(); k += kColumns) {
        const auto store = [&](int p, auto v) { simd::store_as(to + p * terms() + k, v); };
        if constexpr (kTerms == 1)
          transform<FilterToPoints, kDeep>(load(k), store);
        else
          transform_pairs<FilterToPoints, kDeep>(load(2 * k), load(2 * k + kColumns), store);
      }
    }
  }

  /// Into sums_, [P][kPanels][sizes_.block][16]: tiles [first, first + count) times panels [panel,
  /// panel
  /// + width) of the group.
  void multiply(int64_t first, int64_t count, int64_t panel, int64_t width) {
    const int64_t depth = p_.from / kTerms, depths = parts_of(depth, kDepth);
    const int64_t row = points_.row() / kTerms, point = points_.point() / kTerms;
    const auto* const data = reinterpret_cast<const Term*>(data_);
    for (int64_t p = 0; p < P; ++p)
      for (int64_t d = 0; d < depths; ++d) {
        const auto [begin, end] = part_of(depth, d, depths);
        matrix::multiply_block<Term>({.a = data + p * point + first * row + begin,
                                      .a_row = row,
                                      .a_step = 1,
                                      .b = filter_ + (panel * P + p) * terms() + begin * kColumns,
                                      .b_panel = P * terms(),
                                      .depth = end - begin,
                                      .c = rows_.data() + p * sizes_.block,
                                      .c_panel = sizes_.block * kColumns,
                                      .add = d > 0},
                                     count, width * kColumns);
      }
  }

  /// Of the `at`-th panel in sums_, which is `panel` of all.
  void points_to_results(T* y, const float* bias, int64_t first, int64_t count, int64_t panel,
                         int64_t at) const {
    const int64_t column = panel * kColumns, left = p_.to - column;
    if (left < kColumns)
      points_to_results(y, bias, first, count, column, at, simd::SomeLanes{static_cast<int>(left)});
    else
      points_to_results(y, bias, first, count, column, at, simd::AllLanes{});
  }
  template <class Lanes>
  void points_to_results(T* y, const float* bias, int64_t first, int64_t count, int64_t column,
                         int64_t at, Lanes lanes) const {
    const simd::Floats shift = bias ? simd::load(bias + column, lanes) : simd::Floats{};
    for (int64_t i = 0; i < count; ++i) {
      const float* const from = sums_ + (at * sizes_.block + i) * kColumns;
      const int64_t* const made = points_.made(first + i);
      transform<PointsToResults, kDeep>(
          [&](int p) {
            return simd::load(from + p * kPanels * sizes_.block * kColumns, simd::AllLanes{});
          },
          [&](int r, simd::Floats v) {
            if (made[r] < 0) return;
            v += shift;
            if (p_.relu && p_.slope == 0) v = simd::relu(v);
            if (p_.relu && p_.slope != 0) v = simd::select(v < simd::Floats{}, v * p_.slope, v);
            simd::store(y + made[r] * p_.to + column, v, lanes);
          });
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
};

}  // namespace

std::unique_ptr<Kernel> make_data_kernel(const DataProblem& problem, DType type) {
  return kernel_of<DataKernel>(problem, type);
}

}  // namespace tutti::winograd
