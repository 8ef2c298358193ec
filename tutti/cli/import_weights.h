#pragma once
// The weights that --weights names, into a network, for verbs that take a trained one.

#include <filesystem>
#include <string>

#include "tutti/train/given_weights.h"

namespace tutti {

/// Throws ConfigError for weights of another model, with the configuration that has theirs and the
/// command of `verb`. `config`: the file that was given.
void import_weights(const std::string& verb, const std::filesystem::path& path,
                    const std::string& config, const SafetensorsFile& file, Weights& weights);

}  // namespace tutti
