#pragma once
// Stores tables in files. Each rank writes its rows into its own file of a checkpoint
// (rank_file.h), so that nothing is gathered:
//
//   tables/emb_l.0.weight@5000  rows 5000 and up of the table, [rows, width]
//
// A resume on any number of ranks, and every other reader, takes the rows that it needs from the
// files that have them, or from a tensor with the table's own name in a file of weights.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tutti/keep/safetensors.h"
#include "tutti/train/network/weights.h"

namespace tutti::train {

/// Returns this rank's rows, without copying them.
std::vector<keep::TensorRef> table_refs(const Weights& weights);

/// Fills this rank's rows of tables, and the state of their updates. `checkpoint` is the one whose
/// weights `file` holds; empty: none. A table that matches one of `except` keeps its value. Throws
/// ConfigError for a table's rows that are missing; missing state of an update stays at zero, with
/// a warning.
void read_tables(const keep::SafetensorsFile& file, const std::filesystem::path& checkpoint,
                 Weights& weights, std::span<const std::string> except = {});

}  // namespace tutti::train
