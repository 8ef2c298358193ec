#include "tutti/ops/power_spectrum.h"

#include <algorithm>
#include <cmath>

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

WaveShells shells_of(std::string_view op, const ValueType& x) {
  require_batched(op, x, 3);
  const Shape& shape = x.desc.shape;
  WaveShells shells{shape.from(2)};
  require(shape.rank() <= 5 && shells.count() >= 1,
          "{}: x {} needs one to three spatial dimensions, one of them of 2 elements or more", op,
          shape);
  return shells;
}

ValueType spectrum_of(std::string_view op, const ValueType& x) {
  const Shape& shape = x.desc.shape;
  return batched_as(Shape{shape[0], shape[1] * shells_of(op, x).count()}, DType::f32);
}

/// Counts one fast Fourier transform of real numbers for each field, 2.5 P log2 P; kernels may do
/// more.
double transform_flop(const Shape& x) {
  const auto positions = static_cast<double>(x.elements_from(2));
  return 2.5 * static_cast<double>(x[0] * x[1]) * positions * std::log2(positions);
}

}  // namespace

int64_t WaveShells::count() const { return *std::max_element(extents.begin(), extents.end()) / 2; }

int64_t WaveShells::shell_of(std::span<const int64_t> index) const {
  const auto longest = static_cast<double>(*std::max_element(extents.begin(), extents.end()));
  double square = 0;
  for (int d = 0; d < extents.rank(); ++d) {
    const int64_t i = index[static_cast<size_t>(d)];
    const double k = static_cast<double>(std::min(i, extents[d] - i)) * longest /
                     static_cast<double>(extents[d]);
    square += k * k;
  }
  const auto shell = static_cast<int64_t>(std::floor(std::sqrt(square) + 0.5)) - 1;
  return shell < count() ? shell : -1;
}

std::string PowerSpectrumAttributes::to_string() const { return fmt::format("floor {}", floor); }

std::vector<ValueType> PowerSpectrum::infer(Types in) const {
  require_inputs(name(), in, 1);
  require(a_.floor > 0 && std::isfinite(a_.floor), "{}: floor {} is not a positive number", name(),
          a_.floor);
  return {spectrum_of(name(), in[0])};
}

std::vector<Value> PowerSpectrum::grad(const GradArgs& args) const {
  const Node& node = args.node;
  return {args.append1(".dx", std::make_shared<PowerSpectrumGrad>(),
                       {args.dout[0], node.out[0], node.in[0]})};
}

double PowerSpectrum::flop(Types in, Types) const { return transform_flop(in[0].desc.shape); }

std::vector<ValueType> PowerSpectrumGrad::infer(Types in) const {
  require_inputs(name(), in, 3);
  const ValueType y = spectrum_of(name(), in[2]);
  for (size_t i = 0; i < 2; ++i)
    require(in[i].batched && in[i].desc.shape == y.desc.shape && in[i].desc.dtype == DType::f32,
            "{}: {} {} does not fit x {}", name(), i == 0 ? "dy" : "y", in[i].desc, in[2].desc);
  return {batched_as(in[2].desc.shape, in[2].desc.dtype)};
}

double PowerSpectrumGrad::flop(Types, Types out) const {
  return 2 * transform_flop(out[0].desc.shape);
}

}  // namespace tutti::ops
