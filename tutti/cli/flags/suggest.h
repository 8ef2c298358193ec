#pragma once
// "Did you mean": what a wrong key, flag or verb stands for, by its spelling or by what other
// programs call it.

#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// The candidate that other frameworks call `word` ("learning_rate" is optimizer.lr or --lr), else
/// the nearest spelling (base/spelling.h), or "".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// ", did you mean 'x'?" or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// Says how this program does what a verb of others does: ": ...."; else "".
std::string verb_elsewhere(std::string_view verb);

/// Where a word of `name` asks for a GPU ("--gpus", "run.device", "TUTTI_CUDA"): what there is
/// instead, and what to do; else "".
std::string no_gpu(std::string_view name);

}  // namespace tutti
