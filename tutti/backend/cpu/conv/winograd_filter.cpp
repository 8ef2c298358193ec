#include <algorithm>
#include <span>
#include <vector>

#include "tutti/backend/cpu/conv/winograd_kernels.h"
#include "tutti/backend/cpu/conv/winograd_points.h"
#include "tutti/base/error.h"

namespace tutti::backend::winograd {
namespace {

using matrix::kColumns, matrix::kDepth, matrix::kGap, matrix::panels_of;

/// Tiles whose points are summed at a time, within limits. All sums are read and written each time.
/// If the sums of a plane are small, they and the points stay in the second-level cache. Otherwise
/// the sums come from farther away than the points, which the third-level cache holds: so a chunk
/// is as long as one pass allows, unless it has many channels.
constexpr int64_t kNearBytes = 800 << 10, kFewestNear = 96;
constexpr int64_t kFarBytes = 4 << 20, kFewestFar = 64;
/// The size up to which the data's points of all planes are kept; a few outputs at a time are then
/// made from the first point to the last tap. Otherwise each plane's points are made once, and the
/// sums of all outputs are kept.
constexpr size_t kKeptBytes = 8 << 20;

/// Sums over the tiles, point by point, the data's points times the transposed transform of dy
/// (Lavin and Gray's forward pass, transposed). The state: [panels][P][channels][16].
template <class T, bool kDeep>
class FilterKernel final : public Kernel {
 public:
  explicit FilterKernel(const FilterProblem& problem)
      : p_(problem), total_(p_.samples * Tiles(p_.sliding).count()), panels_(panels_of(p_.outputs)),
        chunk_(std::min(total_, chunk_of(p_.channels, panels_))),
        points_(p_.sliding, p_.channels, chunk_),
        kept_(p_.team > 0 && chunk_ == total_ && planes(kDeep) * points_.bytes() <= kKeptBytes),
        rows_(static_cast<size_t>(p_.channels)) {}
  size_t workspace_bytes() const override {
    return data_bytes() + slopes_bytes() +
           (p_.team == 0 ? 0 : bytes_of(kept_ ? kPanels : matrix::parts_of(panels_, p_.team)));
  }
  size_t state_bytes() const override { return p_.team == 0 ? bytes_of(panels_) : 0; }

  void run(const KernelArgs& args) override {
    auto* const memory = static_cast<std::byte*>(args.workspace);
    data_ = reinterpret_cast<Term*>(memory);
    slopes_ = reinterpret_cast<Term*>(memory + data_bytes());
    if (p_.team == 0)
      return add_panels(args, 0, panels_, static_cast<float*>(args.state), args.first);
    CHECK(args.threads == 1 || args.threads == p_.team, "made for {} parts, run by {}", p_.team,
          args.threads);
    // A part that runs alone does the work of all.
    for (int part = 0; part < p_.team; ++part)
      if (args.threads == 1 || part == args.thread) make_panels(args, part);
  }

  void finish(const FinishArgs& args) override {
    const auto [begin, end] = matrix::part_of(panels_ * p_.channels, args.thread, args.threads);
    points_to_filter(args.states, static_cast<float*>(args.out[0]), begin, end);
  }

 private:
  static constexpr int P = power(kPoints, kDeep), kAllTaps = power(kTaps, kDeep);
  using Term = TermsOf<T>;
  static constexpr int64_t kTerms = kTermsOf<T>;

  static int64_t chunk_of(int64_t channels, int64_t panels) {
    constexpr int64_t kSlopes = kPlane * kPanels * kColumns * sizeof(Term) / kTerms;
    const int64_t points = DataPoints<Term, kDeep>::bytes_of_tile(channels),
                  sums = kPlane * channels * panels * kColumns * int64_t{sizeof(float)},
                  near = (kNearBytes - sums) / (points + kSlopes);
    return near >= kFewestNear ? std::min(near, kDepth)
                               : std::clamp(kFarBytes / points, kFewestFar, kDepth);
  }
  /// Returns the bytes of the sums of that many panels.
  size_t bytes_of(int64_t panels) const {
    return static_cast<size_t>(panels * P * p_.channels * kColumns) * sizeof(float);
  }
  size_t data_bytes() const { return (kept_ ? planes(kDeep) : 1) * points_.bytes(); }
  size_t slopes_bytes() const {
    return workspace_part(static_cast<size_t>(kPlane * slopes_point()) * sizeof(Term));
  }

  /// Makes the part's share of dw.
  void make_panels(const KernelArgs& args, int part) {
    const auto [first, last] = matrix::part_of(panels_, part, p_.team);
    if (first == last) return;
    auto* const sums = reinterpret_cast<float*>(static_cast<std::byte*>(args.workspace) +
                                                data_bytes() + slopes_bytes());
    if (kept_) for_planes<kDeep>([&](auto z) { make_points(z, args, 0, total_); });
    const int64_t step = kept_ ? kPanels : last - first;
    for (int64_t j = first; j < last; j += step) {
      const int64_t end = std::min(j + step, last);
      if (kept_)
        for_planes<kDeep>([&](auto z) { add_plane(z, args, total_, j, end, sums, false); });
      else
        add_panels(args, j, end, sums, true);
      void* const states[]{sums};
      points_to_filter(states,
                       static_cast<float*>(args.out[0]) + j * kAllTaps * p_.channels * kColumns, 0,
                       (end - j) * p_.channels);
    }
  }

  /// Adds all tiles to the sums of panels [begin, end), or makes them if these calls are the first.
  void add_panels(const KernelArgs& args, int64_t begin, int64_t end, float* state, bool fresh) {
    for (int64_t first = 0; first < total_; first += chunk_) {
      const int64_t count = std::min(chunk_, total_ - first);
      for_planes<kDeep>([&](auto z) {
        make_points(z, args, first, count);
        add_plane(z, args, count, begin, end, state, first > 0 || !fresh);
      });
    }
  }

  template <int kZ>
  void make_points(std::integral_constant<int, kZ> z, const KernelArgs& args, int64_t first,
                   int64_t count) {
    points_.make(z, static_cast<const T*>(args.in[0]), first, count, data_of(kZ));
  }
  /// Returns where a plane's points of data lie.
  Term* data_of(int z) const {
    return data_ + (kept_ ? static_cast<size_t>(z) * points_.bytes() / sizeof(Term) : 0);
  }

  /// Adds a plane of the tiles whose points were made last.
  template <int kZ>
  void add_plane(std::integral_constant<int, kZ> z, const KernelArgs& args, int64_t count,
                 int64_t begin, int64_t end, float* state, bool add) {
    const auto* const dy = static_cast<const T*>(args.in[1]);
    for (int64_t j = begin; j < end; j += kPanels) {
      const int64_t width = std::min(kPanels, end - j);
      for (int64_t k = 0; k < width; ++k) slopes_to_points(z, dy, count, j + k, k);
      multiply(data_of(kZ), state + ((j - begin) * P + kZ * kPlane) * p_.channels * kColumns, count,
               width, add);
    }
  }

  /// Makes rows [begin, end) of dw, the channels of one panel after another, from the sums of all
  /// states.
  void points_to_filter(std::span<void* const> states, float* dw, int64_t begin, int64_t end) {
    const int64_t tap = p_.channels * kColumns;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t panel = i / p_.channels, c = i % p_.channels * kColumns;
      transform<PointsToFilter, kDeep>(
          [&](int p) {
            simd::Floats sum{};
            for (void* const state : states)
              sum += simd::load(static_cast<const float*>(state) + (panel * P + p) * tap + c,
                                simd::AllLanes{});
            return sum;
          },
          [&](int t, simd::Floats v) {
            simd::store(dw + (panel * kAllTaps + t) * tap + c, v, simd::AllLanes{});
          });
    }
  }

  /// Makes a plane of points of dy for a panel's channels in slopes_,
  /// [kPlane][kPanels][rows()][16], as its `at`-th panel. Points lie slopes_point() apart.
  template <int kZ>
  void slopes_to_points(std::integral_constant<int, kZ> z, const T* dy, int64_t count,
                        int64_t panel, int64_t at) {
    const int64_t column = panel * kColumns, left = p_.outputs - column;
    if (left < kColumns)
      slopes_to_points(z, dy + column, count, at, simd::SomeLanes{static_cast<int>(left)});
    else
      slopes_to_points(z, dy + column, count, at, simd::AllLanes{});
  }
  template <int kZ, class Lanes>
  void slopes_to_points(std::integral_constant<int, kZ>, const T* dy, int64_t count, int64_t at,
                        Lanes lanes) {
    for (int64_t i = 0; i < count; i += kTerms) {
      Term* const to = slopes_ + (at * rows() + i / kTerms) * kColumns;
      const auto load = [&](int64_t tile) {
        return [=, made = points_.made(tile), outputs = p_.outputs](int r) {
          return made[r] < 0 ? simd::Floats{} : simd::load(dy + made[r] * outputs, lanes);
        };
      };
      const auto store = [&](int p, auto v) { simd::store_as(to + p * slopes_point(), v); };
      if constexpr (kTerms == 1)
        transform_plane<ResultsToPoints, ResultsToPoints, kDeep, kZ>(load(i), store);
      else
        transform_pairs<ResultsToPoints, ResultsToPoints, kDeep, kZ>(load(i), load(i + 1), store);
    }
  }

  /// Returns the rows of terms in a chunk.
  int64_t rows() const { return (chunk_ + kTerms - 1) / kTerms; }
  int64_t slopes_point() const { return kPanels * rows() * kColumns + kGap; }

  /// Multiplies points of data by `width` panels' slopes into the sums of one plane, at `sums`.
  void multiply(const Term* data, float* sums, int64_t count, int64_t width, bool add) {
    const int64_t tap = p_.channels * kColumns;
    for (int64_t p = 0; p < kPlane; ++p) {
      for (int64_t c = 0; c < p_.channels; ++c)
        rows_[static_cast<size_t>(c)] = sums + p * tap + c * kColumns;
      matrix::multiply_block<Term>({.a = data + p * points_.point(),
                                    .a_row = 1,
                                    .a_step = points_.row(),
                                    .b = slopes_ + p * slopes_point(),
                                    .b_panel = rows() * kColumns,
                                    .depth = (count + kTerms - 1) / kTerms,
                                    .c = rows_.data(),
                                    .c_panel = P * tap,
                                    .add = add},
                                   p_.channels, width * kColumns);
    }
  }

  FilterProblem p_;
  int64_t total_, panels_;  ///< tiles of all samples, panels of outputs
  int64_t chunk_;           ///< tiles at a time
  DataPoints<Term, kDeep> points_;
  bool kept_;
  std::vector<float*> rows_;  ///< by channel: where its sums lie
  Term *data_ = nullptr, *slopes_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> make_filter_kernel(const FilterProblem& problem, DType type) {
  return kernel_of<FilterKernel>(problem, type);
}

}  // namespace tutti::backend::winograd
