#pragma once
// The command line before it is parsed: the spellings that people type become the one that the
// parser knows.

#include <string>
#include <vector>

namespace tutti {

/// --batch_size=64 -> --batch-size=64; --optimizer.lr=0.1 (or two words) -> --set optimizer.lr=0.1;
/// --resume alone -> --resume=latest. Nothing after a lone "--" changes.
std::vector<std::string> normalise_arguments(const std::vector<std::string>& arguments);

}  // namespace tutti
