// Statistics of a batch norm: shifted sums within a tile; means and squared deviations are combined
// between tiles and threads as in Chan, Golub and LeVeque (1983).

#include <algorithm>
#include <cmath>

#include "tutti/backend/cpu/batch_norm.h"
#include "tutti/backend/cpu/kernel/statistics_out.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/parts.h"

namespace tutti::backend {
namespace {

using simd::Floats;

/// Per channel: mean and sum of squared deviations of `count` numbers, as count, mean[C],
/// deviations[C].
struct Moments {
  double* count;
  double* mean;
  double* deviations;
  Moments(void* state, int64_t channels)
      : count(static_cast<double*>(state)), mean(count + 1), deviations(mean + channels) {}
  static size_t bytes(int64_t channels) {
    return static_cast<size_t>(1 + 2 * channels) * sizeof(double);
  }
};

/// Merges (count_b, mean_b, deviations_b) into the first triple's mean and deviations.
void merge_moments(double count, double& mean, double& deviations, double count_b, double mean_b,
                   double deviations_b) {
  const double all = count + count_b, delta = mean_b - mean;
  mean += delta * count_b / all;
  deviations += deviations_b + delta * delta * count * count_b / all;
}

template <class T>
struct StatsPass {
  const T* y;
  Moments total;  ///< moments of the earlier tiles
  double tile_count;

  struct Params {
    Floats shift;  ///< close to the mean, so that the squares do not cancel
  };
  struct Sums {
    Floats s1, s2;
  };
  Params params(const ChannelLanes& lanes) const { return {lanes.first(y)}; }
  template <class Lanes>
  [[gnu::always_inline]] void step(const Params& p, Sums& s, int64_t at, Lanes lanes) const {
    Floats d = simd::load(y + at, lanes) - p.shift;
    if constexpr (std::is_same_v<Lanes, simd::SomeLanes>) d = simd::first_lanes(d, lanes.n);
    s.s1 += d;
    s.s2 += d * d;
  }
  static void merge(Sums& a, const Sums& b) {
    a.s1 += b.s1;
    a.s2 += b.s2;
  }
  void done(const ChannelLanes& lanes, const Params& p, const Sums& s) {
    double s2[simd::kLanes];
    int i = 0;
    lanes.each(s.s2, [&](int64_t, float v) { s2[i++] = v; });
    i = 0;
    lanes.each(s.s1, [&](int64_t c, float v) {
      const double s1 = v;
      const double mean = static_cast<double>(p.shift[lanes.count == 0 ? 0 : i]) + s1 / tile_count;
      const double deviations = std::max(0.0, s2[i] - s1 * s1 / tile_count);
      merge_moments(*total.count, total.mean[c], total.deviations[c], tile_count, mean, deviations);
      ++i;
    });
  }
};

template <class T>
class MomentsKernel : public Kernel {
 public:
  explicit MomentsKernel(const ChannelView& view) : view_(view) {}
  size_t state_bytes() const override { return Moments::bytes(view_.channels); }
  void run(const KernelArgs& args) override {
    StatsPass<T> pass{input_of<T>(args, 0), Moments(args.state, view_.channels),
                      static_cast<double>(view_.samples * view_.positions)};
    if (args.first) std::fill_n(pass.total.count, 1 + 2 * view_.channels, 0.0);
    walk_tile(view_, pass);
    *pass.total.count += pass.tile_count;
  }
  /// Ends BatchNormMoments.
  void finish(const FinishArgs& args) override {
    const ChannelShare share(view_.channels, args);
    for (int64_t c = share.begin; c < share.end; ++c) {
      const Total all = total(args, c);
      static_cast<float*>(args.out[0])[c] = static_cast<float>(all.mean);
      static_cast<float*>(args.out[1])[c] = static_cast<float>(all.deviations / all.count);
    }
  }

 protected:
  struct Total {
    double count = 0, mean = 0, deviations = 0;
  };
  /// Returns the totals of a channel over all threads.
  Total total(const FinishArgs& args, int64_t c) const {
    Total all;
    for (void* const state : args.states) {
      const Moments m(state, view_.channels);
      merge_moments(all.count, all.mean, all.deviations, *m.count, m.mean[c], m.deviations[c]);
      all.count += *m.count;
    }
    return all;
  }

  ChannelView view_;
};

template <class T>
class StatsKernel final : public MomentsKernel<T> {
 public:
  StatsKernel(const ChannelView& view, const ops::BatchNormStats& op)
      : MomentsKernel<T>(view), statistics_(op.statistics()) {}
  void finish(const FinishArgs& args) override {
    const StatisticsOut to{static_cast<float*>(args.in[1]), static_cast<float*>(args.in[2]),
                           static_cast<float*>(args.out[0]), static_cast<float*>(args.out[1])};
    const ChannelShare share(this->view_.channels, args);
    for (int64_t c = share.begin; c < share.end; ++c) {
      const auto [count, mean, deviations] = this->total(args, c);
      to.end(statistics_, c, count, mean, deviations);
    }
  }

 private:
  ops::NormStatistics statistics_;
};

}  // namespace

void register_batch_norm_sums(KernelTable& table) {
  table.add<ops::BatchNormStats>([](const KernelRequest& r, const ops::BatchNormStats& op) {
    return batch_norm_kernel<StatsKernel>(r, op);
  });
  table.add<ops::BatchNormMoments>(
      [](const KernelRequest& r) { return batch_norm_kernel<MomentsKernel>(r); });
}

}  // namespace tutti::backend
