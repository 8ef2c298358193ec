#pragma once
// The tokenizer of a run: its folder keeps the one that its text was read with, so that evaluation
// and generation mean the same by a token.

#include <filesystem>
#include <string_view>

#include "tutti/config/config.h"
#include "tutti/data/text/tokenizer.h"

namespace tutti {

/// What keeps it in a run's folder; of pairs the target's, and that of sources.
inline constexpr const char* kTokenizerFolder = "tokenizer";
inline constexpr const char* kSourceTokenizerFolder = "source_tokenizer";

/// Into a run's folder. IoError.
void keep_tokenizer(const data::Tokenizer::Files& files, const std::filesystem::path& run,
                    const char* folder = kTokenizerFolder);

/// The folder of the tokenizer of the run that weights lie in: beside the checkpoint, or above it;
/// empty: none is near.
std::filesystem::path tokenizer_near(const std::filesystem::path& weights,
                                     const char* folder = kTokenizerFolder);

/// The tokenizer of weights whose configuration is that of `file`: near them, else near the file,
/// else beside the token files of data.dir. Of pairs `folder` says which; empty: none lies there.
std::filesystem::path tokenizer_of_weights(const std::filesystem::path& weights,
                                           const std::filesystem::path& file,
                                           const RunConfig& config,
                                           const char* folder = kTokenizerFolder);

/// ConfigError where the tokenizer near such weights, which `key` names, is another one than that
/// of the training text: its tokens would mean something else to the network.
void check_tokenizer(const data::Tokenizer::Files& files, const std::filesystem::path& weights,
                     std::string_view key);

/// Lets a text be read as the run of such weights has read it. ConfigError where token files were
/// written with another tokenizer.
void take_tokenizer(const std::filesystem::path& weights, const std::string& part,
                    RunConfig& config);

}  // namespace tutti
