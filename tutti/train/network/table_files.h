#pragma once
// Tables in files. Each rank writes the rows that it has into its own file of a checkpoint
// (rank_file.h), so that nothing is gathered:
//
//   tables/emb_l.0.weight@5000  rows 5000 and up of the table, [rows, width]
//
// A resume on any number of ranks, and every other reader, takes the rows that it needs from
// whichever files have them, or from a tensor with the table's own name in a file of weights.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tutti/keep/safetensors.h"
#include "tutti/train/network/weights.h"

namespace tutti {

/// This rank's rows, where they lie.
std::vector<TensorRef> table_refs(const Weights& weights);

/// Fills this rank's rows of tables, and of what their updates keep. `checkpoint`: whose weights
/// the file is; empty: none. What fits one of `except` keeps its value. ConfigError for rows of a
/// table that are not there; what its update keeps then stays at zero, with a warning.
void read_tables(const SafetensorsFile& file, const std::filesystem::path& checkpoint,
                 Weights& weights, std::span<const std::string> except = {});

}  // namespace tutti
