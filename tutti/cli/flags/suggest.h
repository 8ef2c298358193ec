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

/// Where a word of `name` asks for a GPU ("--gpus", "run.gpu", "TUTTI_CUDA"), returns how a run
/// gets one; else "".
std::string about_gpus(std::string_view name);

/// Returns what to write instead of a word that is none of `choices` but that people expect among
/// them ("gpu" for run.device): ", did you mean ..." or ": ..."; else "".
std::string about_word(const std::vector<std::string>& choices, std::string_view word);

}  // namespace tutti::cli
