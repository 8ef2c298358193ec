#pragma once
// tutti infer with data.dataset = "neurons": cuts a volume into objects, and scores them where the
// truth is known.

#include <filesystem>
#include <string>

#include "tutti/cli/infer/evaluation_ranks.h"
#include "tutti/cli/infer/import_weights.h"

namespace tutti::cli {

struct TracedFile {
  std::filesystem::path input, output;
};

/// Writes the objects' numbers, i32 [z, y, x], and prints a summary; where the file has labels,
/// also the scores against them. Throws ConfigError where the network does not read a seed.
int trace_volume(const TracedFile& file, const GivenNames& given, const train::FoundWeights& found,
                 config::RunConfig& config, const EvaluationRanks& ranks);

}  // namespace tutti::cli
