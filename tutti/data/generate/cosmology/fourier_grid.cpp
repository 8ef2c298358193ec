#include "tutti/data/generate/cosmology/fourier_grid.h"

#include <fftw3.h>

#include <mutex>
#include <new>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

// FFTW makes and destroys plans for one thread at a time.
std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

fftwf_plan plan_of(const auto& plan) { return static_cast<fftwf_plan>(plan.get()); }

fftwf_complex* fftw_modes(GridField& field) {
  return reinterpret_cast<fftwf_complex*>(field.values());
}

}  // namespace

GridField::GridField(int side)
    : values_(fftwf_alloc_real(static_cast<size_t>(side) * side * 2 * (side / 2 + 1))) {
  if (!values_) throw std::bad_alloc();
}

void GridField::Free::operator()(float* values) const { fftwf_free(values); }

FourierGrid::FourierGrid(int side) : side_(side) {
  if (side < 2) throw ConfigError(fmt::format("a periodic grid of side {}: at least 2", side));
  GridField field(side);
  const std::lock_guard lock(planner());
  forward_.reset(
      fftwf_plan_dft_r2c_3d(side, side, side, field.values(), fftw_modes(field), FFTW_ESTIMATE));
  backward_.reset(
      fftwf_plan_dft_c2r_3d(side, side, side, fftw_modes(field), field.values(), FFTW_ESTIMATE));
  CHECK(forward_ && backward_, "FFTW has no plan for side {}", side);
}

void FourierGrid::Destroy::operator()(void* plan) const {
  const std::lock_guard lock(planner());
  fftwf_destroy_plan(static_cast<fftwf_plan>(plan));
}

void FourierGrid::to_modes(GridField& field) const {
  fftwf_execute_dft_r2c(plan_of(forward_), field.values(), fftw_modes(field));
}

void FourierGrid::to_values(GridField& field) const {
  fftwf_execute_dft_c2r(plan_of(backward_), fftw_modes(field), field.values());
}

}  // namespace tutti::data
