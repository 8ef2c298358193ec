#include "tutti/train/weights.h"

#include <algorithm>

#include "tutti/train/initialise.h"

namespace tutti {
namespace {

NamedTensor exported(std::string name, const Variable& variable, const std::byte* arena) {
  NamedTensor tensor{std::move(name), {DType::f32, variable.desc.shape, {}}, {}};
  tensor.bytes.resize(tensor.desc.bytes());
  export_plain(variable, arena, reinterpret_cast<float*>(tensor.bytes.data()));
  return tensor;
}

const NamedTensor& find(std::span<const NamedTensor> tensors, const std::string& name,
                        const Shape& shape) {
  const auto at = std::ranges::find(tensors, name, &NamedTensor::name);
  if (at == tensors.end())
    throw ConfigError(
        fmt::format("tensor '{}' ({}) is missing from the weights: is this another model?", name,
                    shape.to_string()));
  if (!(at->desc.shape == shape))
    throw ConfigError(fmt::format("tensor '{}' has shape {}, the model needs {}", name,
                                  at->desc.shape.to_string(), shape.to_string()));
  if (at->desc.dtype != DType::f32)
    throw ConfigError(
        fmt::format("tensor '{}' is {}, the model needs f32", name, name_of(at->desc.dtype)));
  return *at;
}

void import_from(std::span<const NamedTensor> tensors, const std::string& name,
                 const Variable& variable, std::byte* arena) {
  import_plain(
      variable,
      reinterpret_cast<const float*>(find(tensors, name, variable.desc.shape).bytes.data()), arena);
}

std::string statistic_name(int replica, const Variable& variable) {
  return fmt::format("replica {}/{}", replica, variable.name);
}

}  // namespace

Weights::Weights(const Variables& variables, int local_replicas, std::byte* parameters, bool fills)
    : variables_(variables), own_parameters_(parameters == nullptr ? variables.parameter_bytes : 0),
      state_(variables.parameter_bytes * variables.state_kinds.size()),
      parameters_(parameters == nullptr ? own_parameters_.data() : parameters), fills_(fills) {
  for (int r = 0; r < local_replicas; ++r) statistics_.emplace_back(variables.statistic_bytes);
}

void Weights::initialise(uint64_t seed) {
  std::vector<float> plain;
  const auto fill = [&](const Variable& variable, std::byte* arena) {
    plain.resize(static_cast<size_t>(variable.desc.elements()));
    tutti::initialise({variable.name, variable.desc.shape, variable.init}, seed, plain);
    import_plain(variable, plain.data(), arena);
  };
  for (const Variable& variable : variables_.parameters)
    if (fills_) fill(variable, parameters());
  for (int r = 0; r < local_replicas(); ++r)
    for (const Variable& variable : variables_.statistics) fill(variable, statistics(r));
}

size_t Weights::memory_bytes() const {
  size_t bytes = own_parameters_.bytes() + state_.bytes();
  for (const Buffer& buffer : statistics_) bytes += buffer.bytes();
  return bytes;
}

std::vector<NamedTensor> Weights::export_model(const std::byte* statistics) const {
  std::vector<NamedTensor> tensors;
  for (const Variable& variable : variables_.parameters)
    tensors.push_back(exported(variable.name, variable, parameters()));
  for (const Variable& variable : variables_.statistics)
    tensors.push_back(exported(variable.name, variable, statistics));
  return tensors;
}

std::vector<NamedTensor> Weights::export_state() const {
  std::vector<NamedTensor> tensors;
  for (size_t k = 0; k < variables_.state_kinds.size(); ++k)
    for (const Variable& variable : variables_.parameters)
      tensors.push_back(exported(variable.name + "." + variables_.state_kinds[k], variable,
                                 state() + k * variables_.parameter_bytes));
  return tensors;
}

std::vector<NamedTensor> Weights::export_statistics(const std::byte* statistics,
                                                    int replica) const {
  std::vector<NamedTensor> tensors;
  for (const Variable& variable : variables_.statistics)
    tensors.push_back(exported(statistic_name(replica, variable), variable, statistics));
  return tensors;
}

void Weights::import_model(std::span<const NamedTensor> tensors) {
  for (const Variable& variable : variables_.parameters)
    if (fills_) import_from(tensors, variable.name, variable, parameters());
  for (const Variable& variable : variables_.statistics)
    for (int r = 0; r < local_replicas(); ++r)
      import_from(tensors, variable.name, variable, statistics(r));
  for (const NamedTensor& tensor : tensors)
    if (!variables_.find_parameter(tensor.name) && !variables_.find_statistic(tensor.name) &&
        !tensor.name.ends_with("num_batches_tracked"))
      throw ConfigError(
          fmt::format("tensor '{}' in the weights belongs to no layer of the model", tensor.name));
}

void Weights::import_state(std::span<const NamedTensor> tensors) {
  for (size_t k = 0; k < variables_.state_kinds.size(); ++k)
    for (const Variable& variable : variables_.parameters)
      import_from(tensors, variable.name + "." + variables_.state_kinds[k], variable,
                  state() + k * variables_.parameter_bytes);
}

void Weights::import_statistics(std::span<const NamedTensor> tensors, int local_replica,
                                int replica) {
  for (const Variable& variable : variables_.statistics)
    import_from(tensors, statistic_name(replica, variable), variable, statistics(local_replica));
}

}  // namespace tutti
