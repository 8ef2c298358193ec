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

  explicit Spectrum(const Shape& x)
      : transform(Shape(std::span<const int64_t>(x.begin() + 2, x.end()))) {
    const WaveShells of{Shape(std::span<const int64_t>(x.begin() + 2, x.end()))};
    shells = of.count();
    members.assign(static_cast<size_t>(shells), 0);
    std::array<int64_t, 3> index{};
    for (int64_t kd = 0; kd < transform.half(); ++kd)
      for (int64_t kh = 0; kh < transform.rows(); ++kh)
        for (int64_t kw = 0; kw < transform.row(); ++kw) {
          transform.index_of(kd, kh, kw, index.data());
          const auto b = static_cast<int32_t>(
              of.of(std::span(index).first(static_cast<size_t>(of.extents.rank()))));
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

template <class T>
class SpectrumKernel final : public Kernel {
 public:
  SpectrumKernel(const KernelRequest& r, std::shared_ptr<const Spectrum> s, float floor)
      : s_(std::move(s)), x_(r.in[0]), floor_(floor) {}
  size_t workspace_bytes() const override {
    return workspace_part(x_.bytes()) + workspace_part(sums_bytes()) +
           s_->transform.workspace_floats() * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    auto* const memory = static_cast<std::byte*>(args.workspace);
    const T* x = x_.gather(static_cast<const T*>(args.in[0]), memory);
    auto* const sums = reinterpret_cast<double*>(memory + workspace_part(x_.bytes()));
    auto* const work = reinterpret_cast<float*>(memory + workspace_part(x_.bytes()) +
                                                workspace_part(sums_bytes()));
    auto* y = static_cast<float*>(args.out[0]);
    const int64_t positions = s_->transform.positions(),
                  fields = x_.samples() * x_.size() / positions;
    for (int64_t f = 0; f < fields; ++f, x += positions, y += s_->shells) {
      std::fill_n(sums, s_->shells, 0.);
      s_->transform.begin(x, work);
      for (int64_t kd = 0; kd < s_->transform.half(); kd += s_->transform.planes())
        s_->each(kd, s_->transform.transform(kd, work),
                 [&](int32_t b, int members, float re, float im) {
                   if (b >= 0) sums[b] += static_cast<double>(re * re + im * im) * members;
                 });
      for (int64_t b = 0; b < s_->shells; ++b)
        y[b] = static_cast<float>(
            std::log(static_cast<double>(floor_) + sums[b] / s_->members[static_cast<size_t>(b)] /
                                                       static_cast<double>(positions)));
    }
  }

 private:
  size_t sums_bytes() const { return static_cast<size_t>(s_->shells) * sizeof(double); }

  std::shared_ptr<const Spectrum> s_;
  PlainSamples<T> x_;
  float floor_;
};

template <class T>
class SpectrumGradKernel final : public Kernel {
 public:
  SpectrumGradKernel(const KernelRequest& r, std::shared_ptr<const Spectrum> s)
      : s_(std::move(s)), x_(r.in[2]), dx_(r.out[0]) {}
  size_t workspace_bytes() const override {
    return workspace_part(x_.bytes()) + workspace_part(dx_.bytes()) +
           workspace_part(factor_bytes()) + s_->transform.workspace_floats() * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    auto* memory = static_cast<std::byte*>(args.workspace);
    const T* x = x_.gather(static_cast<const T*>(args.in[2]), memory);
    memory += workspace_part(x_.bytes());
    T* const plain = dx_.in_place() ? static_cast<T*>(args.out[0]) : reinterpret_cast<T*>(memory);
    memory += workspace_part(dx_.bytes());
    auto* const factor = reinterpret_cast<float*>(memory);
    auto* const work = reinterpret_cast<float*>(memory + workspace_part(factor_bytes()));
    const int64_t positions = s_->transform.positions(),
                  fields = x_.samples() * x_.size() / positions;
    for (int64_t f = 0; f < fields; ++f) {
      const auto at = [&](size_t input, int64_t b) {
        return static_cast<double>(static_cast<const float*>(args.in[input])[f * s_->shells + b]);
      };
      for (int64_t b = 0; b < s_->shells; ++b)
        factor[b] = static_cast<float>(2 * at(0, b) * std::exp(-at(1, b)) /
                                       s_->members[static_cast<size_t>(b)] /
                                       static_cast<double>(positions));
      s_->transform.begin(x + f * positions, work);
      for (int64_t kd = 0; kd < s_->transform.half(); kd += s_->transform.planes()) {
        s_->each(kd, s_->transform.transform(kd, work),
                 [&](int32_t b, int members, float& re, float& im) {
                   const float scale = b < 0 ? 0 : factor[b] * static_cast<float>(members);
                   re *= scale;
                   im *= scale;
                 });
        s_->transform.back(kd, work);
      }
      s_->transform.end(work, plain + f * positions);
    }
    if (!dx_.in_place()) dx_.scatter(plain, static_cast<T*>(args.out[0]));
  }

 private:
  size_t factor_bytes() const { return static_cast<size_t>(s_->shells) * sizeof(float); }

  std::shared_ptr<const Spectrum> s_;
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
