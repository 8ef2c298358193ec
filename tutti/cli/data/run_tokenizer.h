#pragma once
// The tokenizer of a run: its folder keeps the one that its text was read with, so that tokens mean
// the same in evaluation and generation.

#include <filesystem>
#include <string_view>

#include "tutti/config/config.h"
#include "tutti/data/text/tokenizer.h"

namespace tutti::cli {

/// The tokenizer's folder in a run's folder; for pairs, the target's, followed by the source's.
inline constexpr const char* kTokenizerFolder = "tokenizer";
inline constexpr const char* kSourceTokenizerFolder = "source_tokenizer";

/// Copies a tokenizer into a run's folder. Throws IoError.
void keep_tokenizer(const data::Tokenizer::Files& files, const std::filesystem::path& run,
                    const char* folder = kTokenizerFolder);

/// Returns the tokenizer's folder in the run that weights lie in: beside the checkpoint, or above
/// it; empty: there is none nearby.
std::filesystem::path tokenizer_near(const std::filesystem::path& weights,
                                     const char* folder = kTokenizerFolder);

/// Returns the tokenizer of weights whose configuration is `file`: near the weights, else near the
/// file, else beside the token files of data.dir. For pairs `folder` says which; empty: there is
/// none.
std::filesystem::path tokenizer_of_weights(const std::filesystem::path& weights,
                                           const std::filesystem::path& file,
                                           const config::RunConfig& config,
                                           const char* folder = kTokenizerFolder);

/// Throws ConfigError where the tokenizer near such weights, which `key` names, differs from the
/// training text's tokenizer: its tokens would mean something else to the network.
void check_tokenizer(const data::Tokenizer::Files& files, const std::filesystem::path& weights,
                     std::string_view key);

/// Makes a text be read as in the run of such weights. Throws ConfigError where token files were
/// written with another tokenizer.
void take_tokenizer(const std::filesystem::path& weights, const std::string& part,
                    config::RunConfig& config);

}  // namespace tutti::cli
