// Power spectra and their gradients.

#include <cmath>
#include <memory>
#include <mutex>

#include "tutti/backend/cpu/field_transform.h"
#include "tutti/backend/cpu/generic.h"
#include "tutti/backend/cpu/plain_samples.h"
#include "tutti/ops/power_spectrum.h"

namespace tutti {
namespace {

/// A transform and the shells of its waves. Immutable: threads share it.
struct Spectrum {
  FieldTransform transform;
  int64_t shells;
  std::vector<int32_t> shell;   ///< of waves [half, h, w], -1: none
  std::vector<double> members;  ///< waves in each shell

  explicit Spectrum(const Shape& x) : transform(x.from(2)) {
    const WaveShells all{x.from(2)};
    const auto rank = static_cast<size_t>(all.extents.rank());
    shells = all.count();
    members.assign(static_cast<size_t>(shells), 0);
    std::array<int64_t, 3> index{};
    for (int64_t kd = 0; kd < transform.half(); ++kd)
      for (int64_t kh = 0; kh < transform.rows(); ++kh)
        for (int64_t kw = 0; kw < transform.row(); ++kw) {
          transform.index_of(kd, kh, kw, index.data());
          const auto b = static_cast<int32_t>(all.shell_of(std::span(index).first(rank)));
          shell.push_back(b);
          if (b >= 0) members[static_cast<size_t>(b)] += transform.members(kd);
        }
  }

  /// f(shell or -1, how many a wave stands for, real part, imaginary part) for those of one run.
  template <class F>
  void each(int64_t kd, float* waves, F f) const {
    const int64_t rows = transform.rows(), row = transform.row(),
                  end = std::min(kd + transform.planes(), transform.half());
    const int32_t* b = shell.data() + kd * rows * row;
    for (; kd < end; ++kd)
      for (int64_t h = 0; h < rows; ++h, waves += 2 * row, b += row)
        for (int64_t w = 0; w < row; ++w) f(b[w], transform.members(kd), waves[w], waves[row + w]);
  }
};

/// One sample of a tile, so that a workspace holds no more.
TensorDesc one_sample(TensorDesc d) {
  d.shape[0] = 1;
  return d;
}

template <class T>
class SpectrumKernel final : public Kernel {
 public:
  SpectrumKernel(const KernelRequest& r, std::shared_ptr<const Spectrum> s, float floor)
      : s_(std::move(s)), samples_(r.in[0].shape[0]), x_(one_sample(r.in[0])), floor_(floor) {}
  size_t workspace_bytes() const override {
    return workspace_part(x_.bytes()) + workspace_part(sums_bytes()) +
           s_->transform.workspace_floats() * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    auto* const memory = static_cast<std::byte*>(args.workspace);
    auto* const sums = reinterpret_cast<double*>(memory + workspace_part(x_.bytes()));
    auto* const work = reinterpret_cast<float*>(memory + workspace_part(x_.bytes()) +
                                                workspace_part(sums_bytes()));
    const auto* from = static_cast<const T*>(args.in[0]);
    auto* y = static_cast<float*>(args.out[0]);
    for (int64_t n = 0; n < samples_; ++n, from += x_.size()) {
      const T* const x = x_.gather(from, memory);
      for (int64_t at = 0; at < x_.size(); at += s_->transform.positions(), y += s_->shells)
        field(x + at, work, sums, y);
    }
  }

 private:
  void field(const T* x, float* work, double* sums, float* y) const {
    std::fill_n(sums, s_->shells, 0.);
    s_->transform.start(x, work);
    for (int64_t kd = 0; kd < s_->transform.half(); kd += s_->transform.planes())
      s_->each(kd, s_->transform.transform(kd, work),
               [&](int32_t b, int members, float re, float im) {
                 if (b >= 0) sums[b] += static_cast<double>(re * re + im * im) * members;
               });
    const auto positions = static_cast<double>(s_->transform.positions());
    for (int64_t b = 0; b < s_->shells; ++b)
      y[b] = static_cast<float>(std::log(
          static_cast<double>(floor_) + sums[b] / s_->members[static_cast<size_t>(b)] / positions));
  }
  size_t sums_bytes() const { return static_cast<size_t>(s_->shells) * sizeof(double); }

  std::shared_ptr<const Spectrum> s_;
  int64_t samples_;
  PlainSamples<T> x_;
  float floor_;
};

template <class T>
class SpectrumGradKernel final : public Kernel {
 public:
  SpectrumGradKernel(const KernelRequest& r, std::shared_ptr<const Spectrum> s)
      : s_(std::move(s)), samples_(r.in[2].shape[0]), x_(one_sample(r.in[2])),
        dx_(one_sample(r.out[0])) {}
  size_t workspace_bytes() const override {
    return workspace_part(x_.bytes()) + workspace_part(dx_.bytes()) +
           workspace_part(factor_bytes()) + s_->transform.workspace_floats() * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    auto* memory = static_cast<std::byte*>(args.workspace);
    void* const gathered = memory;
    memory += workspace_part(x_.bytes());
    void* const plain = memory;
    memory += workspace_part(dx_.bytes());
    auto* const factor = reinterpret_cast<float*>(memory);
    auto* const work = reinterpret_cast<float*>(memory + workspace_part(factor_bytes()));
    const auto *dy = static_cast<const float*>(args.in[0]),
               *y = static_cast<const float*>(args.in[1]);
    const auto* from = static_cast<const T*>(args.in[2]);
    auto* to = static_cast<T*>(args.out[0]);
    for (int64_t n = 0; n < samples_; ++n, from += x_.size(), to += x_.size()) {
      const T* const x = x_.gather(from, gathered);
      T* const dx = dx_.in_place() ? to : static_cast<T*>(plain);
      for (int64_t at = 0; at < x_.size(); at += s_->transform.positions()) {
        factors(dy, y, factor);
        field(x + at, factor, work, dx + at);
        dy += s_->shells, y += s_->shells;
      }
      if (!dx_.in_place()) dx_.scatter(dx, to);
    }
  }

 private:
  /// 2 w of each shell.
  void factors(const float* dy, const float* y, float* factor) const {
    const auto positions = static_cast<double>(s_->transform.positions());
    for (int64_t b = 0; b < s_->shells; ++b)
      factor[b] =
          static_cast<float>(2 * static_cast<double>(dy[b]) * std::exp(-static_cast<double>(y[b])) /
                             s_->members[static_cast<size_t>(b)] / positions);
  }

  void field(const T* x, const float* factor, float* work, T* dx) const {
    s_->transform.start(x, work);
    for (int64_t kd = 0; kd < s_->transform.half(); kd += s_->transform.planes()) {
      s_->each(kd, s_->transform.transform(kd, work),
               [&](int32_t b, int members, float& re, float& im) {
                 const float scale = b < 0 ? 0 : factor[b] * static_cast<float>(members);
                 re *= scale;
                 im *= scale;
               });
      s_->transform.back(kd, work);
    }
    s_->transform.finish(work, dx);
  }
  size_t factor_bytes() const { return static_cast<size_t>(s_->shells) * sizeof(float); }

  std::shared_ptr<const Spectrum> s_;
  int64_t samples_;
  PlainSamples<T> x_, dx_;
};

}  // namespace

bool append_spectrum_candidates(const KernelRequest& r, std::vector<KernelCandidate>& candidates) {
  const auto* const forward = dynamic_cast<const PowerSpectrum*>(r.op);
  if (!forward && !dynamic_cast<const PowerSpectrumGrad*>(r.op)) return false;
  const TensorDesc& x = r.in[forward ? 0 : 2];
  KernelCandidate c = candidate_for(r, "cpu:spectrum");
  c.refusal = refusal_of_layouts(r);
  // One transform for all threads, made when the first kernel is.
  struct Shared {
    std::once_flag once;
    std::shared_ptr<const Spectrum> spectrum;
  };
  const float floor = forward ? forward->spectrum().floor : 0;
  const bool is_float = with_float_type(x.dtype, [&](auto type) {
    using T = decltype(type);
    c.make = [r, forward = forward != nullptr, floor, shape = x.shape,
              shared = std::make_shared<Shared>()]() -> std::unique_ptr<Kernel> {
      std::call_once(shared->once,
                     [&] { shared->spectrum = std::make_shared<const Spectrum>(shape); });
      if (forward) return std::make_unique<SpectrumKernel<T>>(r, shared->spectrum, floor);
      return std::make_unique<SpectrumGradKernel<T>>(r, shared->spectrum);
    };
  });
  if (!is_float) c.refusal = fmt::format("no spectrum of {}", name_of(x.dtype));
  candidates.push_back(std::move(c));
  return true;
}

}  // namespace tutti
