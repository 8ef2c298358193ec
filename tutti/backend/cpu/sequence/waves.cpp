// Sinusoids and rotations by position. Sequences are channels last: a position's channels are
// contiguous.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/sequence/attention_rows.h"
#include "tutti/backend/cpu/sequence/channels_last.h"
#include "tutti/ops/sequence/waves.h"

namespace tutti::backend {
namespace {

using attention::for_each_lanes;
using simd::Floats;

using WaveTable = std::vector<float>;
/// Writes the numbers of a position.
using WaveRow = std::function<void(int64_t position, float* row)>;

/// The numbers that a kernel reads for each position: a row of `size` floats. For positions 0, 1,
/// ... they are a table, which all kernels with the same `key` share, because there are many layers
/// and threads; for given positions a row is computed when it is read.
class WaveRows {
 public:
  WaveRows(const KernelRequest& r, int64_t size, const std::string& key, WaveRow row)
      : size_(size), positions_(r.in[0].shape[2]), row_(std::move(row)) {
    if (r.in.size() == 1) table_ = shared(fmt::format("{} {} {}", key, size, positions_));
  }
  size_t workspace_bytes() const { return table_ ? 0 : static_cast<size_t>(size_) * sizeof(float); }
  const float* read(const KernelArgs& args, int64_t n, int64_t t) const {
    if (table_) return table_->data() + t * size_;
    auto* const row = static_cast<float*>(args.workspace);
    row_(static_cast<const int32_t*>(args.in[1])[n * positions_ + t], row);
    return row;
  }

 private:
  std::shared_ptr<const WaveTable> shared(const std::string& key) const {
    static std::mutex mutex;
    static std::map<std::string, std::weak_ptr<const WaveTable>> tables;
    const std::lock_guard lock(mutex);
    if (auto known = tables[key].lock()) return known;
    auto made = std::make_shared<WaveTable>(static_cast<size_t>(size_ * positions_));
    for (int64_t t = 0; t < positions_; ++t) row_(t, made->data() + t * size_);
    tables[key] = made;
    return made;
  }

  int64_t size_, positions_;
  WaveRow row_;
  std::shared_ptr<const WaveTable> table_;  // released with the last kernel of a size
};

template <class T>
class SinusoidsKernel final : public Kernel {
 public:
  SinusoidsKernel(const KernelRequest& r, const ops::AddSinusoids& op)
      : samples_(r.in[0].shape[0]), channels_(r.in[0].shape[1]), positions_(r.in[0].shape[2]),
        rows_(r, channels_, "sinusoids " + op.attributes(),
              [base = op.base(), channels = channels_](int64_t position, float* row) {
                for (int64_t c = 0; c < channels; ++c)
                  row[c] = static_cast<float>(ops::sinusoid(position, c, channels, base));
              }) {}

  size_t workspace_bytes() const override { return rows_.workspace_bytes(); }

  void run(const KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.in[0]);
    auto* y = static_cast<T*>(args.out[0]);
    for (int64_t n = 0; n < samples_; ++n)
      for (int64_t t = 0; t < positions_; ++t, x += channels_, y += channels_) {
        const float* const row = rows_.read(args, n, t);
        for_each_lanes(channels_, [&](int64_t c, auto lanes) {
          simd::store(y + c, simd::load(x + c, lanes) + simd::load(row + c, lanes), lanes);
        });
      }
  }

 private:
  int64_t samples_, channels_, positions_;
  WaveRows rows_;
};

/// A row: the cosines of a head's planes, then their sines.
template <class T>
class RotateKernel final : public Kernel {
 public:
  RotateKernel(const KernelRequest& r, const ops::Rotate& op)
      : a_(op.rotation()), samples_(r.in[0].shape[0]), channels_(r.in[0].shape[1]),
        positions_(r.in[0].shape[2]),
        rows_(r, a_.width, fmt::format("rotation base {} back {}", a_.base, a_.back),
              [a = a_](int64_t position, float* row) {
                for (int64_t i = 0; i < a.width / 2; ++i) {
                  const double angle = ops::wave_angle(position, i, a.width, a.base);
                  row[i] = static_cast<float>(std::cos(angle));
                  row[a.width / 2 + i] =
                      static_cast<float>(a.back ? -std::sin(angle) : std::sin(angle));
                }
              }) {}

  size_t workspace_bytes() const override { return rows_.workspace_bytes(); }

  void run(const KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.in[0]);
    auto* y = static_cast<T*>(args.out[0]);
    const int64_t turned = a_.heads * a_.width;
    for (int64_t n = 0; n < samples_; ++n)
      for (int64_t t = 0; t < positions_; ++t, x += channels_, y += channels_) {
        const float* const row = rows_.read(args, n, t);
        for (int64_t first = 0; first < turned; first += a_.width)
          turn(x + first, x + first + a_.width / 2, y + first, row);
        if (x != y) std::copy(x + turned, x + channels_, y + turned);
      }
  }

 private:
  void turn(const T* low, const T* high, T* y, const float* row) const {
    const int64_t half = a_.width / 2;
    for_each_lanes(half, [&](int64_t i, auto lanes) {
      const Floats l = simd::load(low + i, lanes), h = simd::load(high + i, lanes),
                   c = simd::load(row + i, lanes), s = simd::load(row + half + i, lanes);
      simd::store(y + i, l * c - h * s, lanes);
      simd::store(y + half + i, h * c + l * s, lanes);
    });
  }

  ops::RotationAttributes a_;
  int64_t samples_, channels_, positions_;
  WaveRows rows_;
};

template <template <class> class K, class O>
KernelCandidate wave_kernel(const KernelRequest& r, const O& op) {
  KernelCandidate c =
      candidate_for(r, std::is_same_v<O, ops::Rotate> ? "cpu:rotate" : "cpu:sinusoids");
  for (const TensorDesc& d : {r.in[0], r.out[0]})
    if (d.layout != Layout::channels_last(3)) c.refusal = "only channels last";
  choose_kernel<K>(c, r.in[0].dtype, "sequences", r, op);
  return c;
}

}  // namespace

void register_wave_kernels(KernelTable& table) {
  table.add<ops::AddSinusoids>(channels_last(wave_kernel<SinusoidsKernel, ops::AddSinusoids>));
  table.add<ops::Rotate>(channels_last(wave_kernel<RotateKernel, ops::Rotate>));
}

}  // namespace tutti::backend
