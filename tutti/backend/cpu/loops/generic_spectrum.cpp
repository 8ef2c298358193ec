// Power spectra and their gradients.

#include <cmath>
#include <memory>
#include <mutex>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/plain_samples.h"
#include "tutti/base/numeric/fourier.h"
#include "tutti/ops/power_spectrum.h"

namespace tutti::backend {
namespace {

/// A transform and the shells of its waves. Immutable: threads share it.
class Spectrum {
 public:
  explicit Spectrum(const Shape& x)
      : shells_(ops::WaveShells{x.from(2)}), last_(x[x.rank() - 1]), fourier_(extents()),
        members_(static_cast<size_t>(shells_.count())) {
    const Shape& s = shells_.extents;
    std::array<int64_t, 3> index{};
    const auto wave = std::span(index).first(static_cast<size_t>(s.rank()));
    for (int64_t row = 0; row < fourier_.rows(); ++row) {
      int64_t rest = row;
      for (int d = s.rank() - 1; d-- > 0; rest /= s[d]) index[static_cast<size_t>(d)] = rest % s[d];
      for (wave.back() = 0; wave.back() < half(); ++wave.back()) {
        const auto b = static_cast<int32_t>(shells_.shell_of(wave));
        shell_.push_back(b);
        if (b >= 0) members_[static_cast<size_t>(b)] += stands_for(wave.back());
      }
    }
  }

  int64_t shells() const { return shells_.count(); }
  int64_t positions() const { return fourier_.rows() * last_; }
  /// Returns the number of waves in a shell.
  double members(int64_t shell) const { return members_[static_cast<size_t>(shell)]; }
  size_t field_bytes() const { return static_cast<size_t>(fourier_.floats()) * sizeof(float); }

  /// Writes the modes of x [positions] to `field`, of field_bytes().
  template <class T>
  void to_modes(const T* x, float* field) const {
    for (int64_t row = 0; row < fourier_.rows(); ++row, x += last_)
      for (int64_t i = 0; i < last_; ++i)
        field[row * fourier_.row() + i] = static_cast<float>(x[i]);
    fourier_.to_modes(field);
  }
  template <class T>
  void to_values(float* field, T* x) const {
    fourier_.to_values(field);
    for (int64_t row = 0; row < fourier_.rows(); ++row, x += last_)
      for (int64_t i = 0; i < last_; ++i) x[i] = static_cast<T>(field[row * fourier_.row() + i]);
  }

  /// Calls f(shell or -1, number of waves it stands for, real part, imaginary part) for each mode.
  template <class F>
  void each(float* field, F f) const {
    const int32_t* b = shell_.data();
    for (int64_t row = 0; row < fourier_.rows(); ++row, b += half(), field += fourier_.row())
      for (int64_t k = 0; k < half(); ++k) f(b[k], stands_for(k), field[2 * k], field[2 * k + 1]);
  }

 private:
  std::span<const int64_t> extents() const {
    return {shells_.extents.begin(), shells_.extents.end()};
  }
  int64_t half() const { return last_ / 2 + 1; }
  /// Counts a mode and its conjugate, if the field does not hold the latter.
  int stands_for(int64_t k) const { return k == 0 || 2 * k == last_ ? 1 : 2; }

  ops::WaveShells shells_;
  int64_t last_;
  RealFourier fourier_;
  std::vector<int32_t> shell_;   ///< shell of each mode, -1: none
  std::vector<double> members_;  ///< waves in each shell
};

/// Describes one sample of a tile, so that a workspace holds no more.
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
    return workspace_part(s_->field_bytes()) + workspace_part(sums_bytes()) + x_.bytes();
  }

  void run(const KernelArgs& args) override {
    auto* memory = static_cast<std::byte*>(args.workspace);
    auto* const modes = reinterpret_cast<float*>(memory);
    auto* const sums = reinterpret_cast<double*>(memory += workspace_part(s_->field_bytes()));
    void* const gathered = memory + workspace_part(sums_bytes());
    const auto* from = static_cast<const T*>(args.in[0]);
    auto* y = static_cast<float*>(args.out[0]);
    for (int64_t n = 0; n < samples_; ++n, from += x_.size()) {
      const T* const x = x_.gather(from, gathered);
      for (int64_t at = 0; at < x_.size(); at += s_->positions(), y += s_->shells())
        field(x + at, modes, sums, y);
    }
  }

 private:
  size_t sums_bytes() const { return static_cast<size_t>(s_->shells()) * sizeof(double); }

  void field(const T* x, float* modes, double* sums, float* y) const {
    s_->to_modes(x, modes);
    std::fill_n(sums, s_->shells(), 0.);
    s_->each(modes, [&](int32_t b, int waves, float re, float im) {
      if (b >= 0) sums[b] += static_cast<double>(re * re + im * im) * waves;
    });
    const auto positions = static_cast<double>(s_->positions());
    for (int64_t b = 0; b < s_->shells(); ++b)
      y[b] = static_cast<float>(
          std::log(static_cast<double>(floor_) + sums[b] / s_->members(b) / positions));
  }

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
    return workspace_part(s_->field_bytes()) + workspace_part(factor_bytes()) +
           workspace_part(x_.bytes()) + dx_.bytes();
  }

  void run(const KernelArgs& args) override {
    auto* memory = static_cast<std::byte*>(args.workspace);
    auto* const modes = reinterpret_cast<float*>(memory);
    auto* const factor = reinterpret_cast<float*>(memory += workspace_part(s_->field_bytes()));
    void* const gathered = memory += workspace_part(factor_bytes());
    void* const plain = memory + workspace_part(x_.bytes());
    const auto *dy = static_cast<const float*>(args.in[0]),
               *y = static_cast<const float*>(args.in[1]);
    const auto* from = static_cast<const T*>(args.in[2]);
    auto* to = static_cast<T*>(args.out[0]);
    for (int64_t n = 0; n < samples_; ++n, from += x_.size(), to += x_.size()) {
      const T* const x = x_.gather(from, gathered);
      T* const dx = dx_.in_place() ? to : static_cast<T*>(plain);
      for (int64_t at = 0; at < x_.size(); at += s_->positions()) {
        factors(dy, y, factor);
        field(x + at, factor, modes, dx + at);
        dy += s_->shells(), y += s_->shells();
      }
      if (!dx_.in_place()) dx_.scatter(dx, to);
    }
  }

 private:
  size_t factor_bytes() const { return static_cast<size_t>(s_->shells()) * sizeof(float); }

  /// Computes 2 w / P of each shell.
  void factors(const float* dy, const float* y, float* factor) const {
    const auto positions = static_cast<double>(s_->positions());
    for (int64_t b = 0; b < s_->shells(); ++b)
      factor[b] =
          static_cast<float>(2 * static_cast<double>(dy[b]) * std::exp(-static_cast<double>(y[b])) /
                             s_->members(b) / positions);
  }

  void field(const T* x, const float* factor, float* modes, T* dx) const {
    s_->to_modes(x, modes);
    s_->each(modes, [&](int32_t b, int, float& re, float& im) {
      const float scale = b < 0 ? 0 : factor[b];
      re *= scale;
      im *= scale;
    });
    s_->to_values(modes, dx);
  }

  std::shared_ptr<const Spectrum> s_;
  int64_t samples_;
  PlainSamples<T> x_, dx_;
};

/// Returns K<type of x>(request, transform, args...). All threads share one transform, which is
/// made with the first kernel.
template <template <class> class K, class... Args>
KernelCandidate spectrum_kernel(const KernelRequest& r, const TensorDesc& x, Args... args) {
  struct Shared {
    std::once_flag once;
    std::shared_ptr<const Spectrum> spectrum;
  };
  KernelCandidate c = candidate_for(r, "cpu:spectrum");
  c.refusal = refusal_of_layouts(r);
  const bool is_float = with_float_type(x.dtype, [&](auto type) {
    c.make = [r, shape = x.shape, args...,
              shared = std::make_shared<Shared>()]() -> std::unique_ptr<Kernel> {
      std::call_once(shared->once,
                     [&] { shared->spectrum = std::make_shared<const Spectrum>(shape); });
      return std::make_unique<K<decltype(type)>>(r, shared->spectrum, args...);
    };
  });
  if (!is_float) c.refusal = fmt::format("no spectrum of {}", name_of(x.dtype));
  return c;
}

}  // namespace

void register_spectrum_kernels(KernelTable& table) {
  table.add<ops::PowerSpectrum>([](const KernelRequest& r, const ops::PowerSpectrum& op) {
    return spectrum_kernel<SpectrumKernel>(r, r.in[0], op.spectrum().floor);
  });
  table.add<ops::PowerSpectrumGrad>(
      [](const KernelRequest& r) { return spectrum_kernel<SpectrumGradKernel>(r, r.in[2]); });
}

}  // namespace tutti::backend
