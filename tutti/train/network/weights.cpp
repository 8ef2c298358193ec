#include "tutti/train/network/weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "tutti/base/log.h"
#include "tutti/base/name_pattern.h"
#include "tutti/keep/foreign_names.h"
#include "tutti/train/network/initialise.h"
#include "tutti/train/network/optimizer.h"

namespace tutti::train {
using keep::SafetensorsFile, plan::Variable;
namespace {

Shape stored_shape(const Variable& variable, const Shape& shape) {  // as in files
  switch (variable.init.stored) {
    case graph::Init::Stored::as_it_is: break;
    case graph::Init::Stored::matrix: return {shape[0], shape[1]};
    case graph::Init::Stored::transposed: return {shape[1], shape[0]};
  }
  return shape;
}

void transpose(const float* from, float* to, int64_t rows, int64_t columns) {  // in cached blocks
  constexpr int64_t kBlock = 32;
  for (int64_t r = 0; r < rows; r += kBlock)
    for (int64_t c = 0; c < columns; c += kBlock)
      for (int64_t i = r; i < std::min(r + kBlock, rows); ++i)
        for (int64_t j = c; j < std::min(c + kBlock, columns); ++j)
          to[j * rows + i] = from[i * columns + j];
}

/// The tensor of that name as f32, plain.
std::vector<float> read(const SafetensorsFile& file, const std::string& name, const Shape& shape) {
  const SafetensorsFile::Entry* entry = file.find(name);
  if (!entry)
    throw ConfigError(fmt::format(
        "tensor '{}' ({}) is missing from the weights: they are of another model, or incomplete",
        name, shape.to_string()));
  if (entry->shape.size() > Shape::kMaxRank || !(Shape(entry->shape) == shape))
    throw ConfigError(fmt::format(
        "tensor '{}' has shape {}, the model needs {}: the weights are of another model", name,
        fmt::join(entry->shape, "x"), shape.to_string()));
  if (entry->type > SafetensorsFile::Type::bf16)
    throw IoError(fmt::format(
        "{}: tensor '{}' holds whole numbers ({}), and the model's are floating-point: those of a "
        "quantised model mean nothing without their scales; give weights as F32, F16 or BF16",
        file.path().string(), name, name_of(entry->type)));
  return file.read_f32(*entry);
}

/// Returns this rank's part of a whole plain tensor.
std::vector<float> slice_of(const Variable& variable, std::vector<float> whole) {
  if (!variable.slice) return whole;
  std::vector<float> own(static_cast<size_t>(variable.desc.elements()));
  variable.slice->take(whole, variable.slice->me, own);
  return own;
}

/// Returns the variable's values, plain, from the tensor that holds them.
std::vector<float> read_own(const SafetensorsFile& file, const std::string& name,
                            const Variable& variable) {
  std::vector<float> values = read(file, name, stored_shape(variable, variable.whole_shape()));
  if (variable.init.stored == graph::Init::Stored::transposed) {
    std::vector<float> own(values.size());
    transpose(values.data(), own.data(), variable.whole_shape()[1], variable.whole_shape()[0]);
    values.swap(own);
  }
  return slice_of(variable, std::move(values));
}

void import_from(const SafetensorsFile& file, const std::string& name, const Variable& variable,
                 std::byte* arena) {
  plan::import_plain(variable, read_own(file, name, variable).data(), arena);
}

constexpr const char* kRaw = ".raw";

}  // namespace

Weights::Weights(const plan::Variables& variables, int local_replicas, std::byte* parameters,
                 bool fills)
    : variables_(variables), apart_(false), tables_(variables.table_bytes), parameters_(parameters),
      fills_(fills) {
  if (!parameters) own_parameters_.emplace_back(variables.parameter_bytes);
  state_.emplace_back(variables.trained_bytes * variables.state_kinds.size());
  for (int r = 0; r < local_replicas; ++r) statistics_.emplace_back(variables.statistic_bytes);
}

Weights::Weights(const plan::Variables& variables, int local_replicas, Replicas replicas,
                 const std::filesystem::path& folder)
    : variables_(variables), apart_(replicas == Replicas::apart), tables_(variables.table_bytes),
      parameters_(nullptr), fills_(true) {
  const auto add = [&](std::vector<device::Buffer>& to, size_t bytes) {
    folder.empty() ? to.emplace_back(bytes) : to.emplace_back(bytes, folder);
  };
  for (int set = 0; set < (apart_ ? local_replicas : 1); ++set) {
    add(own_parameters_, variables.parameter_bytes);
    add(state_, variables.trained_bytes * variables.state_kinds.size());
  }
  for (int r = 0; r < local_replicas; ++r) statistics_.emplace_back(variables.statistic_bytes);
}

void Weights::make_same() {
  if (!apart_) return;
  for (int r = 1; r < local_replicas(); ++r) {
    std::memcpy(parameters(r), parameters(0), variables_.parameter_bytes);
    std::memcpy(state(r), state(0), state_[0].bytes());
  }
}

/// First values are made in place if the variable is plain and whole, else in shared memory.
void Weights::initialise(uint64_t seed) {
  const auto elements = [](const Variable& variable) {
    return static_cast<size_t>(variable.whole_shape().elements());
  };
  const auto lies_plain = [](const Variable& variable) {
    return !variable.slice && variable.desc.layout.is_plain();
  };
  size_t most = 0;
  for (const std::vector<Variable>* list : {&variables_.parameters, &variables_.statistics})
    for (const Variable& variable : *list)
      if (!lies_plain(variable)) most = std::max(most, elements(variable));
  const device::Buffer shared(most * sizeof(float));
  const auto fill = [&](const Variable& variable, std::byte* arena) {
    float* const storage = reinterpret_cast<float*>(arena + variable.offset);
    const std::span<float> plain(lies_plain(variable) ? storage : shared.as<float>().data(),
                                 elements(variable));
    tutti::train::initialise({variable.name, variable.whole_shape(), variable.init}, seed, plain);
    if (lies_plain(variable)) return;
    if (!variable.slice) return plan::import_plain(variable, plain.data(), arena);
    std::vector<float> own(static_cast<size_t>(variable.desc.elements()));
    variable.slice->take(plain, variable.slice->me, own);
    plan::import_plain(variable, own.data(), arena);
  };
  for (const Variable& variable : variables_.parameters)
    if (fills_) fill(variable, parameters());
  for (const plan::TableVariable& table : variables_.tables) {
    const Variable& v = table.variable;
    initialise_rows(
        {v.name, v.desc.shape, v.init}, seed, table.rows.first,
        {reinterpret_cast<float*>(tables() + v.offset), static_cast<size_t>(v.desc.elements())});
  }
  for (int r = 0; r < local_replicas(); ++r)
    for (const Variable& variable : variables_.statistics) fill(variable, statistics(r));
  make_same();
}

size_t Weights::memory_bytes() const {
  size_t bytes = tables_.bytes();
  for (const auto* buffers : {&own_parameters_, &state_, &statistics_})
    for (const device::Buffer& buffer : *buffers) bytes += buffer.bytes();
  return bytes;
}

std::byte* Weights::average() const {
  const auto at = std::ranges::find(variables_.state_kinds, kAverageState);
  if (at == variables_.state_kinds.end()) return nullptr;
  return state() +
         static_cast<size_t>(at - variables_.state_kinds.begin()) * variables_.trained_bytes;
}

void Weights::begin_average(std::span<const ArenaRange> kept) {
  std::byte* const arena = average();
  if (!arena || average_given_) return;
  for (const ArenaRange& range : kept)
    std::memcpy(arena + range.begin, parameters() + range.begin, range.end - range.begin);
}

keep::TensorRef Weights::tensor_of(std::string name, const Variable& variable,
                                   const std::byte* arena) const {
  const bool gathers = variable.slice && slice_ranks_;
  const Shape shape =
      gathers && slice_ranks_->gets_whole() ? variable.whole_shape() : variable.desc.shape;
  keep::TensorRef tensor{.name = std::move(name),
                         .desc = {DType::f32, stored_shape(variable, shape), {}}};
  const std::span<const std::byte> storage(arena + variable.offset, variable.desc.bytes());
  const bool turned = variable.init.stored == graph::Init::Stored::transposed;
  if (gathers)
    tensor.give = [this, &variable, storage, shape, turned](const keep::ByteSink& sink) {
      std::vector<float> values(static_cast<size_t>(variable.desc.elements()));
      plan::export_storage(variable.desc, storage, values.data());
      values = slice_ranks_->whole(*variable.slice, std::move(values));
      std::vector<float> stored(turned ? values.size() : 0);
      if (turned) transpose(values.data(), stored.data(), shape[0], shape[1]);
      sink(std::as_bytes(std::span(turned ? stored : values)));
    };
  else if (variable.desc.layout.is_plain() && !turned)
    tensor.bytes = storage;
  else {
    tensor.sources = {storage};
    tensor.make = [desc = variable.desc, shape, turned](keep::TensorRef::Sources sources,
                                                        std::span<std::byte> out) {
      auto* const to = reinterpret_cast<float*>(out.data());
      if (!turned) return plan::export_storage(desc, sources[0], to);
      std::vector<float> values(static_cast<size_t>(desc.elements()));
      plan::export_storage(desc, sources[0], values.data());
      transpose(values.data(), to, shape[0], shape[1]);
    };
  }
  return tensor;
}

std::vector<keep::TensorRef> Weights::model_tensors(const std::byte* parameters,
                                                    const std::byte* statistics) const {
  std::vector<keep::TensorRef> tensors;
  for (const Variable& variable : variables_.parameters)
    tensors.push_back(tensor_of(variable.name, variable, parameters));
  for (const Variable& variable : variables_.statistics)
    tensors.push_back(tensor_of(variable.name, variable, statistics));
  return tensors;
}

std::vector<keep::TensorRef> Weights::state_tensors() const {
  std::vector<keep::TensorRef> tensors;
  const auto add = [&](const std::string& suffix, const std::byte* arena) {
    std::ranges::move(arena_tensors(suffix, arena), std::back_inserter(tensors));
  };
  for (size_t k = 0; k < variables_.state_kinds.size(); ++k)
    if (variables_.state_kinds[k] == kAverageState)
      add(kRaw, parameters());
    else
      add("." + variables_.state_kinds[k], state() + k * variables_.trained_bytes);
  return tensors;
}

std::vector<keep::TensorRef> Weights::arena_tensors(const std::string& suffix,
                                                    const std::byte* arena) const {
  std::vector<keep::TensorRef> tensors;
  for (const Variable& variable : variables_.parameters)
    if (variables_.is_trained(variable))
      tensors.push_back(tensor_of(variable.name + suffix, variable, arena));
  return tensors;
}

void Weights::import_arena(const SafetensorsFile& file, const std::string& suffix,
                           std::byte* arena) const {
  for (const Variable& variable : variables_.parameters)
    if (variables_.is_trained(variable)) import_from(file, variable.name + suffix, variable, arena);
}

void Weights::import_model(const SafetensorsFile& file, std::span<const std::string> except) {
  const keep::ForeignNames names(file, variables_);
  const auto name_of = [&](const Variable& variable) {
    return names.found(variable.name, stored_shape(variable, variable.whole_shape()));
  };
  for (const Variable& variable : variables_.parameters)
    if (fills_ && !fits_any(except, variable.name))
      import_from(file, name_of(variable), variable, parameters());
  for (const Variable& variable : variables_.statistics) {
    if (fits_any(except, variable.name)) continue;
    const std::vector<float> plain = read(file, name_of(variable), variable.desc.shape);
    for (int r = 0; r < local_replicas(); ++r)
      plan::import_plain(variable, plain.data(), statistics(r));
  }
  names.check_others(except);
  if (const std::string description = names.description(); !description.empty())
    log::info("{}: {}", file.path().string(), description);
  make_same();
}

std::vector<std::string> Weights::import_state(const SafetensorsFile& file,
                                               std::span<const ArenaRange> kept) {
  std::vector<std::string> without;
  for (const Variable& variable : variables_.parameters) {
    if (!variables_.is_trained(variable)) continue;
    bool complete = true;
    for (size_t k = 0; k < variables_.state_kinds.size(); ++k) {
      if (variables_.state_kinds[k] == kAverageState) continue;
      const std::string name = variable.name + "." + variables_.state_kinds[k];
      if (file.find(name))
        import_kept(file, name, variable, state() + k * variables_.trained_bytes, kept);
      else
        complete = false;
    }
    if (!complete) without.push_back(variable.name);
  }
  return without;
}

void Weights::import_average(const SafetensorsFile& model, std::span<const ArenaRange> kept) {
  for (const Variable& variable : variables_.parameters)
    import_kept(model, variable.name, variable, average(), kept);
  average_given_ = true;
}

void Weights::import_raw(const SafetensorsFile& state, bool all) {
  const auto has_state = [&](const Variable& variable) {
    return std::ranges::any_of(variables_.state_kinds, [&](const std::string& kind) {
      return state.find(variable.name + "." + kind);
    });
  };
  for (const Variable& variable : variables_.parameters) {
    const std::string name = variable.name + kRaw;
    if (state.find(name) || (variables_.is_trained(variable) && (all || has_state(variable)))) {
      const std::vector<float> plain = read_own(state, name, variable);
      if (fills_) plan::import_plain(variable, plain.data(), parameters());
    }
  }
}

void Weights::import_kept(const SafetensorsFile& file, const std::string& name,
                          const Variable& variable, std::byte* arena,
                          std::span<const ArenaRange> kept) {
  const size_t begin = variable.offset, end = begin + variable.desc.bytes();
  std::vector<std::byte> whole;  // used if only parts are kept
  for (const ArenaRange& range : kept) {
    const ArenaRange part{std::max(begin, range.begin), std::min(end, range.end)};
    if (part.begin >= part.end) continue;
    if (whole.empty()) {
      whole.resize(variable.desc.bytes());
      Variable alone = variable;
      alone.offset = 0;
      import_from(file, name, alone, whole.data());
    }
    std::memcpy(arena + part.begin, whole.data() + (part.begin - begin), part.end - part.begin);
  }
}

void Weights::import_named_statistics(const SafetensorsFile& file, int local_replica, int replica) {
  for (const Variable& variable : variables_.statistics)
    import_from(file, fmt::format("replica {}/{}", replica, variable.name), variable,
                statistics(local_replica));
}

}  // namespace tutti::train
