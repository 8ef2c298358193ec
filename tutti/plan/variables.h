#pragma once
// Variables: the values that training keeps, in flat arenas. Parameters, their gradients and each
// kind of optimizer state use the same offsets, in the order in which backward produces the
// gradients, so that a bucket is a contiguous slice of every arena and an update is one pass.
// Parameters that are not trained come last: the arenas of gradients and states end before them.
// Values lie in the layout that their kernels want; export and import go through plain tensors.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/graph/graph.h"
#include "tutti/graph/tensor_slice.h"

namespace tutti::plan {

struct Variable {
  std::string name;
  TensorDesc desc;    ///< storage layout; the plain one is {desc.dtype, desc.shape, {}}
  size_t offset = 0;  ///< bytes into its arena, a multiple of 64
  graph::Init init;
  std::optional<graph::TensorSlice> slice =
      {};  ///< set where ranks share it; `desc` is this rank's

  const Shape& whole_shape() const { return slice ? slice->whole : desc.shape; }
};

/// A table, or the state that its update keeps for its rows ("NAME.sum"): the rows that this rank
/// has, in the plain layout.
struct TableVariable {
  Variable variable;
  graph::TableRows rows;
  bool kept_by_update = false;
};

struct Variables {
  std::vector<Variable> parameters;      ///< by offset
  std::vector<Variable> statistics;      ///< per replica
  std::vector<std::string> state_kinds;  ///< suffix of each optimizer state ("momentum"); kind k
                                         ///< lies at k * trained_bytes
  size_t parameter_bytes = 0;            ///< size of the parameter arena
  size_t trained_bytes = 0;              ///< size of the gradient arena, and of each kind of state
  size_t statistic_bytes = 0;            ///< size of one replica's statistics
  std::vector<TableVariable> tables;     ///< by offset, in an arena of their own
  size_t table_bytes = 0;                ///< size of the arena of tables
  std::vector<std::string> elsewhere;    ///< parameters and statistics of the model that are on
                                         ///< other stages of a pipeline

  /// Notes which parameters are slices.
  void set_slices(const graph::TensorSlices& slices);
  bool has_slices() const;
  bool is_trained(const Variable& parameter) const { return parameter.offset < trained_bytes; }
  const Variable* find_parameter(std::string_view name) const;
  const Variable* find_statistic(std::string_view name) const;
  const TableVariable* find_table(std::string_view name) const;
};

/// Copies between storage at `arena + variable.offset` and a plain f32 tensor. Writes padding in
/// storage as zero.
void import_plain(const Variable& variable, const float* plain, std::byte* arena);
void export_plain(const Variable& variable, const std::byte* arena, float* plain);
/// Copies the storage of a tensor, or a copy of it, to a plain one.
void export_storage(const TensorDesc& desc, std::span<const std::byte> storage, float* plain);
/// Makes exports of the calling thread run in this thread alone; otherwise all threads share large
/// ones.
void export_alone();

}  // namespace tutti::plan
