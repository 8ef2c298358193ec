#pragma once
// Private to tokenizers: their files.

#include <string>
#include <vector>

namespace tutti::data {

/// vocab.json of tokens that stand for themselves.
std::string character_vocabulary(const std::vector<std::string>& characters);

}  // namespace tutti::data
