#pragma once
// Fourier transforms of periodic fields, real and complex, by FFTW in single precision. A header
// only: its users link FFTW, the communication library does not.

#include <fftw3.h>
#include <fmt/ranges.h>

#include <complex>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include "tutti/base/error.h"

namespace tutti {

/// Plans of FFTW, which may be made and destroyed by one thread at a time.
class FourierPlans {
 public:
  struct Destroy {
    void operator()(fftwf_plan plan) const {
      const std::lock_guard lock(planner());
      fftwf_destroy_plan(plan);
    }
  };
  using Plan = std::unique_ptr<std::remove_pointer_t<fftwf_plan>, Destroy>;

  static std::mutex& planner() {
    static std::mutex mutex;
    return mutex;
  }
  struct Free {
    void operator()(float* memory) const { fftwf_free(memory); }
  };
  /// Allocates memory for planning: plans depend on its alignment. Planning without measuring does
  /// not touch it.
  static std::unique_ptr<float, Free> memory(int64_t floats) {
    std::unique_ptr<float, Free> made(fftwf_alloc_real(static_cast<size_t>(floats)));
    if (!made) throw std::bad_alloc();
    return made;
  }
};

/// Transforms of fields with certain extents, planned without measuring. The plan is the same on
/// every call on one type of processor, so a field's bits are, too. Transforms may run on several
/// threads at once, each on memory of its own. A field is floats() floats, aligned to 64 bytes:
/// either values [s1]...[row], of which only the first s of a row count, s being the last extent,
/// or modes [s1]...[row / 2] of the same field; row = 2 (s / 2 + 1), so that a transform stays in
/// place.
class RealFourier {
 public:
  /// Takes one to three extents, outermost first, each at least 1. Throws ConfigError if FFTW has
  /// no plan.
  explicit RealFourier(std::span<const int64_t> extents) : row_(2 * (extents.back() / 2 + 1)) {
    for (const int64_t extent : extents.first(extents.size() - 1)) rows_ *= extent;
    const std::vector<int> sides(extents.begin(), extents.end());
    const auto rank = static_cast<int>(sides.size());
    const auto memory = FourierPlans::memory(floats());
    float* const field = memory.get();
    const std::lock_guard lock(FourierPlans::planner());
    forward_.reset(fftwf_plan_dft_r2c(rank, sides.data(), field, modes_of(field), FFTW_ESTIMATE));
    backward_.reset(fftwf_plan_dft_c2r(rank, sides.data(), modes_of(field), field, FFTW_ESTIMATE));
    if (!forward_ || !backward_)
      throw ConfigError(fmt::format("FFTW has no transform of {}", fmt::join(sides, "x")));
  }

  int64_t row() const { return row_; }
  int64_t rows() const { return rows_; }  ///< number of rows in a field
  int64_t floats() const { return rows_ * row_; }

  /// Computes modes[k] = sum of values[x] exp(-2 pi i k x / s).
  void to_modes(float* field) const {
    fftwf_execute_dft_r2c(forward_.get(), field, modes_of(field));
  }
  /// Computes values[x] = sum of modes[k] exp(2 pi i k x / s) over all modes, of which the field
  /// holds half, without a factor 1 / positions. Overwrites the modes.
  void to_values(float* field) const {
    fftwf_execute_dft_c2r(backward_.get(), modes_of(field), field);
  }

 private:
  static fftwf_complex* modes_of(float* field) { return reinterpret_cast<fftwf_complex*>(field); }

  int64_t row_, rows_ = 1;
  FourierPlans::Plan forward_, backward_;
};

/// Does the same for complex fields [s1]...[s], in place, aligned to 64 bytes.
class ComplexFourier {
 public:
  /// Takes one to three extents, outermost first, each at least 1. Throws ConfigError if FFTW has
  /// no plan.
  explicit ComplexFourier(std::span<const int64_t> extents) {
    for (const int64_t extent : extents) elements_ *= extent;
    const std::vector<int> sides(extents.begin(), extents.end());
    const auto memory = FourierPlans::memory(2 * elements_);
    auto* const field = reinterpret_cast<fftwf_complex*>(memory.get());
    const auto plan = [&](int sign) {
      const std::lock_guard lock(FourierPlans::planner());
      return fftwf_plan_dft(static_cast<int>(sides.size()), sides.data(), field, field, sign,
                            FFTW_ESTIMATE);
    };
    forward_.reset(plan(FFTW_FORWARD));
    backward_.reset(plan(FFTW_BACKWARD));
    if (!forward_ || !backward_)
      throw ConfigError(fmt::format("FFTW has no transform of {}", fmt::join(sides, "x")));
  }

  int64_t elements() const { return elements_; }

  /// Computes modes[k] = sum of values[x] exp(-2 pi i k x / s).
  void to_modes(std::complex<float>* field) const { run(forward_, field); }
  /// Computes values[x] = sum of modes[k] exp(2 pi i k x / s), without a factor 1 / positions.
  void to_values(std::complex<float>* field) const { run(backward_, field); }

 private:
  static void run(const FourierPlans::Plan& plan, std::complex<float>* field) {
    auto* const own = reinterpret_cast<fftwf_complex*>(field);
    fftwf_execute_dft(plan.get(), own, own);
  }

  int64_t elements_ = 1;
  FourierPlans::Plan forward_, backward_;
};

}  // namespace tutti
