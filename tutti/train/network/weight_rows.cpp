// The values that each local replica has of its own: rows of tensors in the ranks' files.

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/train/network/weights.h"

namespace tutti::train {
namespace {

std::string rows_name(const plan::Variable& variable) { return "replicas/" + variable.name; }

/// [rows, the statistic's own extents].
Shape rows_shape(const plan::Variable& variable, int rows) {
  std::vector<int64_t> extents{rows};
  extents.insert(extents.end(), variable.desc.shape.begin(), variable.desc.shape.end());
  return Shape(extents);
}

}  // namespace

std::vector<Weights::OwnVariable> Weights::own_variables() const {
  std::vector<OwnVariable> own;
  for (const plan::Variable& variable : variables_.statistics)
    own.push_back({&variable, rows_name(variable), OwnVariable::kStatistic});
  if (!apart_) return own;
  for (const plan::Variable& variable : variables_.parameters) {
    if (!variables_.is_trained(variable)) continue;
    own.push_back({&variable, rows_name(variable), OwnVariable::kParameter});
    for (size_t k = 0; k < variables_.state_kinds.size(); ++k)
      own.push_back(
          {&variable, rows_name(variable) + "." + variables_.state_kinds[k], static_cast<int>(k)});
    for (size_t a = 0; a < added_.size(); ++a)
      own.push_back({&variable, rows_name(variable) + "." + added_[a].name,
                     static_cast<int>(variables_.state_kinds.size() + a)});
  }
  return own;
}

std::byte* Weights::arena_of(const OwnVariable& own, int local_replica) const {
  if (own.kind == OwnVariable::kStatistic) return statistics(local_replica);
  if (own.kind == OwnVariable::kParameter) return parameters(local_replica);
  const auto kind = static_cast<size_t>(own.kind), states = variables_.state_kinds.size();
  if (kind >= states)
    return reinterpret_cast<std::byte*>(
        added_[kind - states].of_local[static_cast<size_t>(local_replica)]);
  return state(local_replica) + kind * variables_.trained_bytes;
}

void Weights::add_rows(const std::string& name, std::vector<float*> of_local) {
  CHECK(apart_ && of_local.size() == statistics_.size(), "rows of {} replicas", of_local.size());
  added_.push_back({name, std::move(of_local)});
}

std::vector<keep::TensorRef> Weights::row_tensors() const {
  std::vector<keep::TensorRef> tensors;
  for (const OwnVariable& own : own_variables()) {
    keep::TensorRef rows{.name = own.name,
                         .desc = {DType::f32, rows_shape(*own.variable, local_replicas()), {}}};
    const TensorDesc& desc = own.variable->desc;
    for (int r = 0; r < local_replicas(); ++r)
      rows.sources.emplace_back(arena_of(own, r) + own.variable->offset, desc.bytes());
    rows.make = [desc](keep::TensorRef::Sources sources, std::span<std::byte> out) {
      auto* row = reinterpret_cast<float*>(out.data());
      for (const auto& source : sources) {
        plan::export_storage(desc, source, row);
        row += desc.elements();
      }
    };
    tensors.push_back(std::move(rows));
  }
  return tensors;
}

void Weights::import_rows(std::span<const keep::SafetensorsFile* const> files, int local_replica,
                          int row) {
  for (const OwnVariable& own : own_variables()) {
    const keep::SafetensorsFile* file = files.front();
    for (const keep::SafetensorsFile* one : files)
      if (one->find(own.name)) file = one;
    const keep::SafetensorsFile::Entry* entry = file->find(own.name);
    const bool added = own.kind >= static_cast<int>(variables_.state_kinds.size());
    if (!entry && added) continue;  // the checkpoint has another scheme
    added_found_ |= added;
    std::vector<float> plain(static_cast<size_t>(own.variable->desc.elements()));
    const auto bytes = std::as_writable_bytes(std::span(plain));
    const int64_t rows = entry && !entry->shape.empty() ? entry->shape[0] : 0;
    if (!entry || entry->type != keep::SafetensorsFile::Type::f32 || row >= rows ||
        !std::ranges::equal(entry->shape, rows_shape(*own.variable, static_cast<int>(rows))))
      throw ConfigError(
          fmt::format("tensor '{}' has no row {} of shape {}: the checkpoint is of "
                      "another model, or of replicas that met otherwise",
                      own.name, row, own.variable->desc.shape.to_string()));
    file->read_part(*entry, static_cast<uint64_t>(row) * bytes.size(), bytes);
    plan::import_plain(*own.variable, plain.data(), arena_of(own, local_replica));
  }
}

}  // namespace tutti::train
