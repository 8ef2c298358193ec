#pragma once
// Private to tokenizers: reads and writes their files.

#include <string>
#include <vector>

namespace tutti::data {

/// Returns vocab.json for tokens that stand for themselves.
std::string character_vocabulary(const std::vector<std::string>& characters);

}  // namespace tutti::data
