#pragma once
// Value: a name for one tensor of a graph; ValueType: its type and whether it has a batch.

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/tensor/tensor_desc.h"

namespace tutti::graph {

/// A handle into a Graph. Default-constructed = no value.
struct Value {
  int32_t id = -1;
  bool valid() const { return id >= 0; }
  bool operator==(const Value&) const = default;
};

struct ValueType {
  TensorDesc desc;       ///< in a graph the layout is always plain; the plan chooses the real one
  bool batched = false;  ///< dimension 0 counts samples
};

/// Where a value's memory comes from and how long it lives.
enum class Role : uint8_t {
  input,      ///< bound by the caller before each run: images, labels
  parameter,  ///< trained weights: f32, one arena
  table,      ///< rows that samples name, and their update's state: f32, an arena of their own
  statistic,  ///< per replica and persistent: batch-norm running averages
  state,      ///< optimizer state: f32, one arena, parallel to parameters
  scalar,     ///< set by the caller before a run: learning rate and the like
  gradient,   ///< gradient of a parameter: f32, one arena in order of production
  result,     ///< everything else that ops produce
};

/// Which rows of a table a rank has: from `first` on, as many as the value has, of `all`.
struct TableRows {
  int64_t first = 0, all = 0;
  bool operator==(const TableRows&) const = default;
};

/// How a parameter or statistic is initialised. fan_in/fan_out follow from the weight's shape [out,
/// in, spatial...].
struct Init {
  enum class Kind : uint8_t {
    zeros,
    ones,
    constant,
    normal,
    truncated_normal,
    uniform,
    kaiming_normal_fan_out,
    kaiming_normal_fan_in,
    kaiming_uniform_fan_out,
    kaiming_uniform_fan_in,
    uniform_fan_in,
    glorot_uniform,
    glorot_normal
  } kind = Kind::zeros;
  // With `value`: constant is that number; normal: N(0, value^2); truncated_normal: the same
  // without numbers more than two deviations from 0; uniform: U(-value, value). kaiming_normal_*:
  // N(0, 2/fan) (He et al. 2015, eq. 10), PyTorch's kaiming_normal_ with its mode;
  // kaiming_uniform_*: U(-l, l) of the same variance, l = sqrt(6/fan); uniform_fan_in:
  // U(-1/sqrt(fan_in), 1/sqrt(fan_in)), the default of PyTorch's layers; `fan` for its biases.
  // glorot_uniform: U(-l, l), l = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010, eq. 16),
  // the default of Keras's layers; glorot_normal: N(0, 2 / (fan_in + fan_out)), PyTorch's
  // xavier_normal_.
  int64_t fan = 0;  ///< overrides the fan computed from the shape when > 0; not for glorot_*
  double value = 0;
  /// The shape in which files hold a weight [K, C, 1] of a layer that works position by position,
  /// so that published weights load by name: its own shape, a matrix [K, C], or the transposed [C,
  /// K].
  enum class Stored : uint8_t { as_it_is, matrix, transposed };
  Stored stored = Stored::as_it_is;
};

/// Returns the names of the kinds, in their order.
constexpr std::array<std::string_view, 13> words(Init::Kind) {
  return {"zeros",
          "ones",
          "constant",
          "normal",
          "truncated_normal",
          "uniform",
          "kaiming_normal_fan_out",
          "kaiming_normal_fan_in",
          "kaiming_uniform_fan_out",
          "kaiming_uniform_fan_in",
          "uniform_fan_in",
          "glorot_uniform",
          "glorot_normal"};
}

}  // namespace tutti::graph

/// Messages print shapes and descriptions of tensors as their to_string() does.
template <>
struct fmt::formatter<tutti::Shape> : fmt::formatter<std::string> {
  auto format(const tutti::Shape& shape, fmt::format_context& to) const {
    return fmt::formatter<std::string>::format(shape.to_string(), to);
  }
};
template <>
struct fmt::formatter<tutti::TensorDesc> : fmt::formatter<std::string> {
  auto format(const tutti::TensorDesc& desc, fmt::format_context& to) const {
    return fmt::formatter<std::string>::format(desc.to_string(), to);
  }
};
