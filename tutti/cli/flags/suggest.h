#pragma once
// "Did you mean": suggests the intended key, flag or verb for a wrong one, by its spelling or by
// its name in other programs.

#include <string>
#include <string_view>
#include <vector>

namespace tutti::cli {

/// Returns the candidate that other frameworks call `word` ("learning_rate" is optimizer.lr or
/// --lr), else the nearest spelling (base/spelling.h), or "".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// Returns ", did you mean 'x'?" or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// Tells how this program does the work of another program's verb: ": ...."; else "".
std::string verb_elsewhere(std::string_view verb);

/// Where a word of `name` asks for a GPU ("--gpus", "run.device", "TUTTI_CUDA"), returns what is
/// available instead and what to do; else "".
std::string no_gpu(std::string_view name);

}  // namespace tutti::cli
