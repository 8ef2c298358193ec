#pragma once
// tutti infer with data.dataset = "neurons": a volume cut into objects, and what that is worth
// where the truth is known.

#include <filesystem>
#include <string>

#include "tutti/cli/infer/evaluation_ranks.h"
#include "tutti/cli/infer/import_weights.h"

namespace tutti {

struct TracedFile {
  std::filesystem::path input, output;
};

/// Writes the objects' numbers, i32 [z, y, x], and prints what was found; where the file has
/// labels, the scores against them, too. ConfigError where the network is none that reads a seed.
int trace_volume(const TracedFile& file, const GivenNames& given, const FoundWeights& found,
                 RunConfig& config, const EvaluationRanks& ranks);

}  // namespace tutti
